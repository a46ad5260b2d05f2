package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
)

// CorruptError tells that a state file exists but cannot be understood. The file
// is left as it is; only a person decides what becomes of it.
type CorruptError struct {
	// Path is the file.
	Path string
	// Reason says what is wrong, with the key where there is one; it starts with
	// "invalid JSON" when the bytes are no JSON at all.
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupt (%s); it is left untouched, repair or remove it explicitly", e.Path, e.Reason)
}

// validator is a document that knows rules its Go type cannot express.
type validator interface{ Validate() error }

// readDocument fills target, a pointer to a struct, from the file at path. A
// missing file gives the error of the file system, a broken one a *CorruptError.
func readDocument(path string, target any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := decodeDocument(data, target); err != nil {
		return &CorruptError{Path: path, Reason: err.Error()}
	}
	return nil
}

func decodeDocument(data []byte, target any) error {
	var probe json.RawMessage
	if err := json.Unmarshal(data, &probe); err != nil {
		return fmt.Errorf("invalid JSON: %w", err)
	}
	if err := decodeStruct("", bytes.TrimSpace(data), reflect.ValueOf(target).Elem()); err != nil {
		return err
	}
	if document, ok := target.(validator); ok {
		return document.Validate()
	}
	return nil
}

// encodeDocument writes a document the way the shared files are written: one tab a
// level, no HTML escapes, one newline at the end (spec: state 1.3).
func encodeDocument(document any) ([]byte, error) {
	compact, err := encodeValue(reflect.ValueOf(document), nil)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", "\t"); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func writeDocument(path string, document any) error {
	data, err := encodeDocument(document)
	if err != nil {
		return err
	}
	return WriteFile(path, data)
}
