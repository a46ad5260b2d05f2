package pijson

import (
	"encoding/json"
	"math"
	"strconv"
)

// Usage counts tokens and money. Values are never negative; sums saturate instead
// of overflowing, so that a child that reports nonsense cannot turn a cost cap off.
type Usage struct {
	Input      int64   `json:"input"`
	Output     int64   `json:"output"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Cost       float64 `json:"cost"` // in the currency of Pi's price table (US dollars)
}

// Tokens is the sum of all tokens, cache reads included.
func (u Usage) Tokens() int64 {
	return addTokens(addTokens(u.Input, u.Output), addTokens(u.CacheRead, u.CacheWrite))
}

// Plus returns the sum of both.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input:      addTokens(u.Input, v.Input),
		Output:     addTokens(u.Output, v.Output),
		CacheRead:  addTokens(u.CacheRead, v.CacheRead),
		CacheWrite: addTokens(u.CacheWrite, v.CacheWrite),
		Cost:       math.Min(u.Cost+v.Cost, math.MaxFloat64),
	}
}

func addTokens(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// UnmarshalJSON reads the usage object of a Pi message, where cost is an object with
// a total. It never fails: what is no sensible number counts as zero.
func (u *Usage) UnmarshalJSON(data []byte) error {
	var w struct {
		Input      number          `json:"input"`
		Output     number          `json:"output"`
		CacheRead  number          `json:"cacheRead"`
		CacheWrite number          `json:"cacheWrite"`
		Cost       json.RawMessage `json:"cost"`
	}
	_ = json.Unmarshal(data, &w) // what cannot be read stays zero
	*u = Usage{
		Input:      w.Input.tokens(),
		Output:     w.Output.tokens(),
		CacheRead:  w.CacheRead.tokens(),
		CacheWrite: w.CacheWrite.tokens(),
		Cost:       readCost(w.Cost),
	}
	return nil
}

// readCost accepts both Pi's cost object and a plain number. Without a total the
// parts are added up.
func readCost(data []byte) float64 {
	if len(data) == 0 {
		return 0
	}
	if data[0] != '{' {
		var n number
		_ = n.UnmarshalJSON(data)
		return float64(n)
	}
	var c struct {
		Input      number  `json:"input"`
		Output     number  `json:"output"`
		CacheRead  number  `json:"cacheRead"`
		CacheWrite number  `json:"cacheWrite"`
		Total      *number `json:"total"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return 0
	}
	if c.Total != nil {
		return float64(*c.Total)
	}
	return math.Min(float64(c.Input)+float64(c.Output)+float64(c.CacheRead)+float64(c.CacheWrite), math.MaxFloat64)
}

// number is a JSON number that tolerates everything: null, text, negative and
// infinite values all read as zero.
type number float64

// UnmarshalJSON never fails.
func (n *number) UnmarshalJSON(data []byte) error {
	*n = 0
	f, err := strconv.ParseFloat(string(data), 64)
	if err == nil && f > 0 && !math.IsInf(f, 0) {
		*n = number(f)
	}
	return nil
}

// maxTokens is the largest count that JSON carries exactly; more is nonsense.
const maxTokens = 1 << 53

func (n number) tokens() int64 {
	return int64(math.Min(float64(n), maxTokens))
}

func (n number) int() int {
	return int(math.Min(float64(n), math.MaxInt32))
}
