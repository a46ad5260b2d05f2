package piharness

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Value is a piece of JSON that is looked into; what is not there is empty.
type Value struct{ any }

// Parse reads JSON; what is none is empty.
func Parse(data []byte) Value {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return Value{}
	}
	return Value{v}
}

// At follows a path of keys and indices: "result.content.0.text".
func (v Value) At(path string) Value {
	for step := range strings.SplitSeq(path, ".") {
		switch within := v.any.(type) {
		case map[string]any:
			v = Value{within[step]}
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil || index < 0 || index >= len(within) {
				return Value{}
			}
			v = Value{within[index]}
		default:
			return Value{}
		}
	}
	return v
}

// List are the elements of an array.
func (v Value) List() []Value {
	within, _ := v.any.([]any)
	values := make([]Value, len(within))
	for i, one := range within {
		values[i] = Value{one}
	}
	return values
}

// Keys are those of an object, sorted.
func (v Value) Keys() []string {
	within, _ := v.any.(map[string]any)
	return slices.Sorted(maps.Keys(within))
}

// Each is the text at a path of each element, joined by spaces.
func (v Value) Each(path string) string {
	var texts []string
	for _, one := range v.List() {
		texts = append(texts, one.At(path).Text())
	}
	return strings.Join(texts, " ")
}

// Empty tells whether nothing is there, or null.
func (v Value) Empty() bool { return v.any == nil }

// Text is a string, "" for anything else.
func (v Value) Text() string {
	text, _ := v.any.(string)
	return text
}

// Number is a number, 0 for anything else.
func (v Value) Number() float64 {
	number, _ := v.any.(float64)
	return number
}

// Truth is true for true alone.
func (v Value) Truth() bool {
	truth, _ := v.any.(bool)
	return truth
}

// String is the JSON, for messages.
func (v Value) String() string {
	data, err := json.Marshal(v.any)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
