package extension_test

import (
	"encoding/json"
	"strconv"
	"strings"
)

// value is a piece of JSON that is looked into; what is not there is empty.
type value struct{ any }

func parse(data []byte) value {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return value{}
	}
	return value{v}
}

// at follows a path of keys and indices: "result.content.0.text".
func (v value) at(path string) value {
	for step := range strings.SplitSeq(path, ".") {
		switch within := v.any.(type) {
		case map[string]any:
			v = value{within[step]}
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil || index >= len(within) {
				return value{}
			}
			v = value{within[index]}
		default:
			return value{}
		}
	}
	return v
}

func (v value) list() []value {
	within, _ := v.any.([]any)
	values := make([]value, len(within))
	for i, one := range within {
		values[i] = value{one}
	}
	return values
}

// each is the text at a path of each element, joined.
func (v value) each(path string) string {
	var texts []string
	for _, one := range v.list() {
		texts = append(texts, one.at(path).text())
	}
	return strings.Join(texts, " ")
}

func (v value) text() string {
	text, _ := v.any.(string)
	return text
}

func (v value) number() float64 {
	number, _ := v.any.(float64)
	return number
}

func (v value) truth() bool {
	truth, _ := v.any.(bool)
	return truth
}

// String is the JSON, for messages.
func (v value) String() string {
	data, err := json.Marshal(v.any)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
