package store

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// encodeValue writes v as compact JSON. Lists and maps that are nil are written
// empty. The keys of a map keep the order they have in source, the value as it was
// read; new ones follow in alphabetical order.
func encodeValue(v reflect.Value, source []byte) ([]byte, error) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return jsonNull, nil
		}
		return encodeValue(v.Elem(), source)
	case reflect.Struct:
		return encodeStruct(v)
	case reflect.Slice:
		return encodeSlice(v)
	case reflect.Map:
		return encodeMap(v, source)
	default:
		return marshal(v.Interface())
	}
}

func encodeStruct(v reflect.Value) ([]byte, error) {
	s := shapeOf(v.Type())
	extra := s.extraOf(v)
	var out object
	for _, f := range s.fields {
		value, source := v.Field(f.index), extra.source.values[f.name]
		if f.omit && isEmpty(value) {
			if keepsEmpty(source, value.Type()) {
				out.set(f.name, source)
			}
			continue
		}
		raw, err := encodeValue(value, source)
		if err != nil {
			return nil, err
		}
		out.set(f.name, raw)
	}
	for _, key := range extra.unknown {
		out.set(key, extra.source.values[key])
	}
	return out.inOrderOf(extra.source).encode()
}

func isEmpty(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// keepsEmpty tells whether an optional key was there, but empty, when the document
// was read; then it stays. A key whose value was taken away goes.
func keepsEmpty(source json.RawMessage, t reflect.Type) bool {
	if source == nil {
		return false
	}
	if bytes.Equal(source, jsonNull) {
		return true
	}
	value := reflect.New(t).Elem()
	return decodeValue("", source, value) == nil && isEmpty(value)
}

func encodeSlice(v reflect.Value) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('[')
	for i := range v.Len() {
		if i > 0 {
			out.WriteByte(',')
		}
		item, err := encodeValue(v.Index(i), nil)
		if err != nil {
			return nil, err
		}
		out.Write(item)
	}
	out.WriteByte(']')
	return out.Bytes(), nil
}

func encodeMap(v reflect.Value, source []byte) ([]byte, error) {
	var out object
	values := map[string]reflect.Value{}
	for _, key := range v.MapKeys() {
		values[key.String()] = v.MapIndex(key)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		raw, err := encodeValue(values[key], nil)
		if err != nil {
			return nil, err
		}
		out.set(key, raw)
	}
	if earlier, err := parseObject(source); err == nil {
		out = out.inOrderOf(earlier)
	}
	return out.encode()
}
