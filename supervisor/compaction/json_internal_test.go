package compaction

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// plain is a value as encoding/json gives it, read with the methods of value.
func (v value) plain() any {
	switch {
	case v.isObject():
		m := map[string]any{}
		v.members(func(key []byte, member value) { m[string(key)] = member.plain() })
		return m
	case v.isArray():
		list := []any{}
		v.items(func(item value) { list = append(list, item.plain()) })
		return list
	case v.isString():
		return v.text()
	case v.isNull():
		return nil
	case v.isTrue():
		return true
	case string(v) == "false":
		return false
	}
	return float64(v.count())
}

func TestADocumentIsReadAsTheStandardLibraryDoes(t *testing.T) {
	t.Parallel()
	var generator func(depth int) *rapid.Generator[any]
	generator = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			kind := rapid.IntRange(0, 6).Draw(t, "kind")
			if depth == 0 {
				kind %= 5
			}
			switch kind {
			case 0:
				return rapid.StringMatching(`[a-z\\"/{}\[\],: \n\x00-\x1fé😀]{0,12}`).Draw(t, "text")
			case 1:
				return float64(rapid.Uint32().Draw(t, "number"))
			case 2:
				return rapid.Bool().Draw(t, "flag")
			case 3, 4:
				return nil
			case 5:
				return rapid.SliceOfN(generator(depth-1), 0, 4).Draw(t, "list")
			}
			return rapid.MapOfN(rapid.StringN(0, 4, -1), generator(depth-1), 0, 4).Draw(t, "object")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(generator(3).Draw(t, "document"))
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "indented") {
			var b bytes.Buffer
			if err := json.Indent(&b, data, " ", "\t"); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		var want any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		v, end := valueAt(data, 0)
		if diff := cmp.Diff(want, v.plain()); diff != "" || end != len(data) {
			t.Fatalf("ends at %d of %d (-want +got):\n%s", end, len(data), diff)
		}
	})
}

func TestTheLengthOfATextIsKnownWithoutReadingIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(rapid.String().Draw(t, "text"), "?")
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := value(data).chars(), length(text); got != want {
			t.Fatalf("%d characters of %q, want %d", got, text, want)
		}
		var escaped strings.Builder
		for _, unit := range utf16.Encode([]rune(text)) {
			escaped.WriteString(`\u`)
			escaped.WriteString(hex4(unit))
		}
		if got, want := value(`"`+escaped.String()+`"`).chars(), len(utf16.Encode([]rune(text))); got != want {
			t.Fatalf("%d characters escaped, want %d", got, want)
		}
	})
}

func hex4(unit uint16) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[unit>>12], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15]})
}

func TestANumberIsAWholeOneThatJavaScriptHolds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "17": 17, "17.9": 17, "-3": 0, "1e3": 1000, "1e400": maxSafeInteger, "-1e400": 0, "9007199254740993": maxSafeInteger, `"7"`: 0, "null": 0, "true": 0, "{}": 0,
	} {
		if got := value(text).count(); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
