package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// object is a JSON object that remembers the order of its keys and the exact bytes
// of its values. A key that occurs twice has its last value, as in JavaScript.
type object struct {
	keys   []string
	values map[string]json.RawMessage
}

var errNotAnObject = errors.New("must be an object")

// parseObject reads data, which must be valid JSON.
func parseObject(data []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return object{}, errNotAnObject
	}
	obj := object{values: map[string]json.RawMessage{}}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return object{}, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return object{}, err
		}
		if key, ok := token.(string); ok { // in an object, keys are all there is
			obj.set(key, value)
		}
	}
	return obj, nil
}

func (o *object) set(key string, value json.RawMessage) {
	if o.values == nil {
		o.values = map[string]json.RawMessage{}
	}
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

func (o object) has(key string) bool {
	_, ok := o.values[key]
	return ok
}

func (o object) encode() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, key := range o.keys {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := marshal(key)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(o.values[key])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// inOrderOf puts the keys that earlier knows first, in its order.
func (o object) inOrderOf(earlier object) object {
	rank := func(key string) int {
		if i := slices.Index(earlier.keys, key); i >= 0 {
			return i
		}
		return len(earlier.keys)
	}
	slices.SortStableFunc(o.keys, func(a, b string) int { return rank(a) - rank(b) })
	return o
}

// marshal is JSON without the HTML escapes of encoding/json.
func marshal(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
