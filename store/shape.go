package store

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Extra carries what a document holds beyond the fields of its Go type: keys that a
// newer writer added, and the order of all keys. It makes a document that was read,
// changed and written again lose nothing. The zero value is that of a new document.
type Extra struct {
	source  object
	unknown []string
}

// Equal compares the unknown keys and their values; the order does not matter.
func (e Extra) Equal(other Extra) bool {
	if len(e.unknown) != len(other.unknown) {
		return false
	}
	for _, key := range e.unknown {
		if !slices.Contains(other.unknown, key) || !bytes.Equal(e.source.values[key], other.source.values[key]) {
			return false
		}
	}
	return true
}

// shape is how a struct maps to a JSON object. Beside the usual json tag a field
// may carry a store tag: "null" accepts null, "optional" accepts that the key is
// missing though it is always written, "filled" refuses the empty string, "lax" takes a value of the wrong type for
// the empty one. The later tag of the Extra field lists keys of newer writers to
// tolerate; "*" tolerates every key and makes all fields optional.
type shape struct {
	fields []field
	names  map[string]int
	extra  int
	later  []string
	open   bool
}

type field struct {
	index                     int
	name                      string
	omit, null, optional, lax bool
	filled                    bool
}

var (
	shapes    sync.Map // reflect.Type -> shape
	extraType = reflect.TypeFor[Extra]()
)

func shapeOf(t reflect.Type) shape {
	if known, ok := shapes.Load(t); ok {
		if s, ok := known.(shape); ok {
			return s
		}
	}
	s := shape{names: map[string]int{}, extra: -1}
	for i := range t.NumField() {
		structField := t.Field(i)
		if structField.Type == extraType {
			later := structField.Tag.Get("later")
			s.extra, s.later, s.open = i, strings.Split(later, ","), later == "*"
			continue
		}
		name, options, _ := strings.Cut(structField.Tag.Get("json"), ",")
		has := strings.Split(structField.Tag.Get("store"), ",")
		s.names[name] = len(s.fields)
		s.fields = append(s.fields, field{
			index: i, name: name, omit: options == "omitempty",
			null: slices.Contains(has, "null"), optional: slices.Contains(has, "optional"), lax: slices.Contains(has, "lax"),
			filled: slices.Contains(has, "filled"),
		})
	}
	shapes.Store(t, s)
	return s
}

func (s shape) extraOf(v reflect.Value) Extra {
	if s.extra < 0 {
		return Extra{}
	}
	extra, _ := v.Field(s.extra).Interface().(Extra)
	return extra
}

func cloneOf[T any](value T) (clone T) {
	reflect.ValueOf(&clone).Elem().Set(deepCopy(reflect.ValueOf(value)))
	return clone
}

// deepCopy returns a copy of v that shares nothing a caller could change.
func deepCopy(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(deepCopy(v.Elem()))
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(deepCopy(v.Index(i)))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, deepCopy(v.MapIndex(key)))
		}
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v) // an Extra is never changed in place, so it may be shared
		if v.Type() == extraType {
			return out
		}
		for i := range v.NumField() {
			out.Field(i).Set(deepCopy(v.Field(i)))
		}
		return out
	default:
		return v
	}
}
