package pijson

import (
	"strconv"
	"strings"
	"time"
)

// Class is the kind of a failure. It decides whether a lane tries again, labels a
// metric, and gives the sentence a user reads.
type Class string

// The classes of failures.
const (
	ClassNone             Class = "" // no failure
	ClassAuth             Class = "auth"
	ClassBilling          Class = "billing"
	ClassRateLimit        Class = "rate_limit"
	ClassOverloaded       Class = "overloaded"
	ClassServer           Class = "server"
	ClassNetwork          Class = "network"
	ClassContextOverflow  Class = "context_overflow"
	ClassModelUnknown     Class = "model_unknown"
	ClassStartContention  Class = "start_contention"
	ClassStartFailure     Class = "start_failure"
	ClassKilled           Class = "killed"
	ClassNoFirstEvent     Class = "no_first_event"
	ClassSilent           Class = "silent"
	ClassTimedOut         Class = "timed_out"
	ClassBudget           Class = "budget"
	ClassProtocol         Class = "protocol"
	ClassTruncated        Class = "truncated"
	ClassFiltered         Class = "filtered"
	ClassEmpty            Class = "empty"
	ClassCancelled        Class = "cancelled"
	ClassInternal         Class = "internal"
	ClassOrchestratorLost Class = "orchestrator_lost"
	ClassUnknown          Class = "unknown"
)

type classInfo struct {
	class     Class
	retryable bool
	sentence  string // without a full stop: a detail may follow after a colon
}

// classes is the one place that says what each class means.
var classes = []classInfo{
	{ClassAuth, false, "the provider refused the credentials"},
	{ClassBilling, false, "the provider account has no balance or quota left"},
	{ClassRateLimit, true, "the provider limits the rate of requests"},
	{ClassOverloaded, true, "the provider is overloaded"},
	{ClassServer, true, "the provider failed on its side"},
	{ClassNetwork, true, "the connection to the provider failed"},
	{ClassContextOverflow, false, "the task does not fit the model's context"},
	{ClassModelUnknown, false, "the model or provider is not known"},
	{ClassStartContention, true, "pi could not start because another pi held one of its lock files"},
	{ClassStartFailure, false, "pi could not be started"},
	{ClassKilled, true, "pi was killed from outside"},
	{ClassNoFirstEvent, true, "pi printed no event in the time allowed for starting"},
	{ClassSilent, true, "pi printed nothing for too long"},
	{ClassTimedOut, false, "the lane ran out of time"},
	{ClassBudget, false, "the lane reached its budget"},
	{ClassProtocol, false, "pi's event stream was not as agreed"},
	{ClassTruncated, false, "the answer was cut off"},
	{ClassFiltered, false, "the provider's content filter stopped the answer"},
	{ClassEmpty, false, "pi ended without an answer"},
	{ClassCancelled, false, "the lane was cancelled"},
	{ClassInternal, false, "pilothouse failed to follow the child"},
	{ClassOrchestratorLost, true, "pilothouse ended while the lane was running"},
	{ClassUnknown, false, "pi reported an error"},
}

// Classes lists every class of failure, for metrics and documentation.
func Classes() []Class {
	all := make([]Class, len(classes))
	for i, info := range classes {
		all[i] = info.class
	}
	return all
}

func (c Class) info() classInfo {
	for _, info := range classes {
		if info.class == c {
			return info
		}
	}
	return classInfo{class: c}
}

// Retryable tells whether the same request may succeed when it is made again.
func (c Class) Retryable() bool { return c.info().retryable }

// Sentence says in plain words what the class means, without a full stop. It is
// empty for ClassNone.
func (c Class) Sentence() string { return c.info().sentence }

// pattern assigns a class to texts that contain one of the phrases (in lower case)
// or begin, on some line, with one of the HTTP status codes.
type pattern struct {
	class   Class
	phrases []string
	status  []int
}

// patterns are tried in order: what a vendor says in words comes before the status
// code, because the same code stands for different things (429 for a rate limit and
// for an empty account, 400 for a bad request and for too long a prompt).
var patterns = []pattern{
	{class: ClassStartContention, phrases: []string{
		"lock file is already being held", "elocked", "auth.json.lock", "settings.json.lock",
		"models-store.json.lock", "trust.json.lock", "failed to acquire lock", "could not acquire lock",
	}},
	{class: ClassBilling, phrases: []string{
		"insufficient balance", "insufficient_quota", "insufficient funds", "insufficient credits",
		"exceeded your current quota", "quota exceeded", "credit balance is too low", "usage limit reached",
		"usage limit has been reached", "hit your usage limit", "usage_limit_reached", "usage_not_included",
		"payment required", "out of credits", "out of budget", "billing details", "billing_hard_limit",
		"billing hard limit", "billing not active", "spending limit",
	}},
	{class: ClassContextOverflow, phrases: []string{
		"context length", "context_length", "maximum context", "context window", "contextwindow",
		"prompt is too long", "prompt too long", "input is too long", "input token count",
		"maximum prompt length", "reduce the length of the messages", "exceeds the available context",
		"context overflow", "request_too_large", "request too large for",
	}},
	{class: ClassFiltered, phrases: []string{
		"content_filter", "content filter", "content management policy", "finish_reason: safety",
		"prohibited_content", "stop_reason: refusal", "finish_reason: sensitive",
	}},
	{class: ClassModelUnknown, phrases: []string{
		"unknown provider", "unknown model", "model not found", "model_not_found", "no such model",
		"model does not exist", "invalid model", "is not a valid model", "no models available",
		"no model selected", "not supported model", "unsupported model", "--list-models to see available models",
	}},
	{class: ClassAuth, phrases: []string{
		"no api key", "incorrect api key", "invalid api key", "invalid x-api-key", "invalid_api_key",
		"api key not valid", "api key not found", "missing api key", "unauthorized", "unauthenticated",
		"authentication", "invalid_grant", "token has expired", "token expired", "permission_denied",
		"permission_error", "not logged in", "please log in",
	}},
	{class: ClassOverloaded, phrases: []string{
		"overloaded", "over capacity", "at capacity", "capacity exceeded", "currently experiencing high demand",
	}, status: []int{529}},
	{class: ClassRateLimit, phrases: []string{
		"rate limit", "rate_limit", "ratelimit", "too many requests", "resource_exhausted",
		"resource exhausted", "throttl",
	}, status: []int{429}},
	{class: ClassBilling, status: []int{402}},
	{class: ClassAuth, status: []int{401, 403}},
	{class: ClassModelUnknown, status: []int{404}},
	{class: ClassContextOverflow, status: []int{413}},
	{class: ClassNetwork, status: []int{408}},
	{class: ClassServer, status: []int{500, 501, 502, 503, 504, 520, 521, 522, 523, 524}, phrases: []string{
		"internal server error", "internal_server_error", "bad gateway", "gateway timeout",
		"service unavailable", "server_error", "server error", "api_error",
		"malformed server-sent event", "error reading response",
	}},
	{class: ClassNetwork, phrases: []string{
		"enotfound", "econnreset", "econnrefused", "etimedout", "eai_again", "ehostunreach", "enetunreach",
		"econnaborted", "und_err", "fetch failed", "connection error", "network error", "socket hang up",
		"other side closed", "request timed out", "timed out", "without finish_reason",
		"stream ended", "terminated", "premature close", "certificate",
	}},
	// A provider's broken JSON, as the older generation words it.
	{class: ClassServer, phrases: []string{
		"expected property name", "in json at position", "unexpected end of json input", "unterminated string in json",
	}},
	{class: ClassKilled, phrases: []string{"heap out of memory"}},
	{class: ClassStartFailure, phrases: []string{
		"unknown option", "cannot find module", "err_module_not_found", "cannot find package",
		"does not provide an export", "unsupported engine", "command not found", "exec format error",
		"bad interpreter", "syntaxerror", "no such file or directory", "permission denied", "executable file not found",
	}},
}

// statusAtStart finds an HTTP status at the beginning of a line, as in `429: {…}`,
// `401 Incorrect API key` or `Error: 503`, and one announced by a word. A number in
// the margin of a source listing, as in `500 | const x`, is none.
var statusAtStart = lazily(
	`(?m)^(?:error:?\s*)?([45]\d\d)(?::|\s+[\pL{"<(\[]|\s*$)|\b(?:http|status|status code|code)[ :=]{1,2}([45]\d\d)\b`)

// Classify finds the class of a provider's error message or of a child's standard
// error. A text that no pattern knows, the empty one included, is ClassUnknown.
func Classify(text string) Class {
	lower := strings.ToLower(text)
	status := 0
	if m := statusAtStart().FindStringSubmatch(lower); m != nil {
		status, _ = strconv.Atoi(m[1] + m[2])
	}
	for _, p := range patterns {
		for _, s := range p.status {
			if s == status {
				return p.class
			}
		}
		for _, phrase := range p.phrases {
			if strings.Contains(lower, phrase) {
				return p.class
			}
		}
	}
	return ClassUnknown
}

var retryAfter = lazily(`(?i)(?:retry[-_ ]?after|(?:re)?try(?: again)? in|retrydelay)["':=\s]*(\d{1,9}(?:\.\d{1,9})?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)?\b`)

// maxRetryAfter bounds the wait that a provider's text can ask for.
const maxRetryAfter = 24 * time.Hour

// RetryAfter finds the wait that a provider asks for in its error text, such as
// "Retry-After: 3" or "try again in 1.5s". It is 0 when there is none.
func RetryAfter(text string) time.Duration {
	m := retryAfter().FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	unit := time.Second
	switch u := strings.ToLower(m[2]); {
	case strings.HasPrefix(u, "ms"), strings.HasPrefix(u, "milli"):
		unit = time.Millisecond
	case strings.HasPrefix(u, "m"):
		unit = time.Minute
	case strings.HasPrefix(u, "h"):
		unit = time.Hour
	}
	if n >= float64(maxRetryAfter)/float64(unit) {
		return maxRetryAfter
	}
	return time.Duration(n * float64(unit))
}
