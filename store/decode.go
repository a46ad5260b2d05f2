package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// InvalidError tells which key of a document breaks a rule.
type InvalidError struct {
	// Key is the path of the key, for example reviewRounds[0].lanes[1].laneId.
	Key string
	// Reason is the broken rule, for example "must be a string".
	Reason string
}

func (e *InvalidError) Error() string {
	if e.Key == "" {
		return "the document " + e.Reason
	}
	return e.Key + " " + e.Reason
}

func invalid(key, format string, args ...any) error {
	return &InvalidError{Key: key, Reason: fmt.Sprintf(format, args...)}
}

func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

var jsonNull = []byte("null")

// maxSafeInteger is the largest integer the other writer can hold exactly.
const maxSafeInteger = 1<<53 - 1

func decodeStruct(path string, raw []byte, v reflect.Value) error {
	obj, err := parseObject(raw)
	if err != nil {
		return invalid(path, "%s", err)
	}
	s := shapeOf(v.Type())
	extra := Extra{source: obj}
	for _, key := range obj.keys {
		if _, known := s.names[key]; known {
			continue
		}
		if !s.open && !slices.Contains(s.later, key) {
			return invalid(below(path, key), "is not a known key")
		}
		extra.unknown = append(extra.unknown, key)
	}
	for _, f := range s.fields {
		if err := decodeField(path, obj, s, f, v.Field(f.index)); err != nil {
			return err
		}
	}
	if s.extra >= 0 {
		v.Field(s.extra).Set(reflect.ValueOf(extra))
	}
	return nil
}

func decodeField(path string, obj object, s shape, f field, v reflect.Value) error {
	key := below(path, f.name)
	raw, present := obj.values[f.name]
	switch {
	case !present && (s.open || f.omit || f.optional):
		return nil
	case !present:
		return invalid(key, "is missing")
	case bytes.Equal(raw, jsonNull) && f.null:
		v.SetZero()
		return nil
	case bytes.Equal(raw, jsonNull) && s.open:
		return nil // keeps the default
	case f.lax && !startsLike(raw, v.Type()):
		v.SetZero()
		return nil
	}
	if err := decodeValue(key, raw, v); err != nil {
		return err
	}
	if f.filled && v.IsZero() {
		return invalid(key, "is empty")
	}
	return nil
}

// startsLike tells whether raw is an array for a slice, a string for a string.
func startsLike(raw []byte, t reflect.Type) bool {
	if t.Kind() == reflect.Slice {
		return raw[0] == '['
	}
	return raw[0] == '"'
}

func decodeValue(path string, raw []byte, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decodeValue(path, raw, v.Elem())
	case reflect.Struct:
		return decodeStruct(path, raw, v)
	case reflect.Slice:
		return decodeSlice(path, raw, v)
	case reflect.Map:
		return decodeMap(path, raw, v)
	case reflect.Int:
		var number float64
		if json.Unmarshal(raw, &number) != nil || bytes.Equal(raw, jsonNull) ||
			number != math.Trunc(number) || math.Abs(number) > maxSafeInteger {
			return invalid(path, "must be an integer")
		}
		v.SetInt(int64(number))
		return nil
	case reflect.Bool:
		if json.Unmarshal(raw, v.Addr().Interface()) != nil || bytes.Equal(raw, jsonNull) {
			return invalid(path, "must be true or false")
		}
		return nil
	default: // all that is left are kinds of strings
		if raw[0] != '"' || json.Unmarshal(raw, v.Addr().Interface()) != nil {
			return invalid(path, "must be a string")
		}
		return nil
	}
}

func decodeSlice(path string, raw []byte, v reflect.Value) error {
	var items []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return invalid(path, "must be an array")
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if err := decodeValue(fmt.Sprintf("%s[%d]", path, i), item, out.Index(i)); err != nil {
			return err
		}
	}
	v.Set(out)
	return nil
}

func decodeMap(path string, raw []byte, v reflect.Value) error {
	obj, err := parseObject(raw)
	if err != nil {
		return invalid(path, "%s", err)
	}
	out := reflect.MakeMap(v.Type())
	for _, key := range obj.keys {
		value := reflect.New(v.Type().Elem()).Elem()
		if err := decodeValue(below(path, key), obj.values[key], value); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(key), value)
	}
	v.Set(out)
	return nil
}
