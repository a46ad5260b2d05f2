package pijson_test

import (
	"strings"
	"testing"
	"time"

	"pilothouse/lanes/pijson"
)

func TestProviderErrorsAreClassified(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]pijson.Class{
		"":                                    pijson.ClassUnknown,
		"scripted in-stream error":            pijson.ClassUnknown,
		"400: {\"message\":\"bad tool\"}":     pijson.ClassUnknown,
		"it took 429 tries":                   pijson.ClassUnknown,
		"429 | const x = 1":                   pijson.ClassUnknown,
		"4290 tokens":                         pijson.ClassUnknown,
		"stack trace:\n429 Too Many Requests": pijson.ClassRateLimit,

		`401: {"message":"Incorrect API key provided"}`: pijson.ClassAuth,
		"Error: 403 Forbidden":                          pijson.ClassAuth,
		`{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`: pijson.ClassAuth,
		"No API key found for openai.":                    pijson.ClassAuth,
		"API key not valid. Please pass a valid API key.": pijson.ClassAuth,
		"Error: invalid_grant: Token has been revoked":    pijson.ClassAuth,
		"HTTP 401": pijson.ClassAuth,

		"402 Insufficient Balance": pijson.ClassBilling,
		"402":                      pijson.ClassBilling,
		"429 You exceeded your current quota, please check your plan and billing details.":             pijson.ClassBilling,
		`429: {"error":{"code":"insufficient_quota"}}`:                                                 pijson.ClassBilling,
		"400 Your credit balance is too low to access the Anthropic API.":                              pijson.ClassBilling,
		"You have hit your ChatGPT usage limit (plus plan). Usage limit reached, try again in 3 hours": pijson.ClassBilling,

		"429":                       pijson.ClassRateLimit,
		"429 status code (no body)": pijson.ClassRateLimit,
		"Too Many Requests":         pijson.ClassRateLimit,
		"ThrottlingException: Too many tokens, please wait before trying again.":                                   pijson.ClassRateLimit,
		"429 Rate limit reached for x. Visit https://platform.openai.com/account/billing to add a payment method.": pijson.ClassRateLimit,
		`429: {"error":{"status":"RESOURCE_EXHAUSTED"}}`:                                                           pijson.ClassRateLimit,

		`529: {"type":"overloaded_error","message":"Overloaded"}`: pijson.ClassOverloaded,
		"529": pijson.ClassOverloaded,
		"503 The model is overloaded. Please try again later.": pijson.ClassOverloaded,

		"500":                     pijson.ClassServer,
		"502 Bad Gateway":         pijson.ClassServer,
		"Error: status code: 503": pijson.ClassServer,
		"503 Service Unavailable": pijson.ClassServer,
		"Internal server error":   pijson.ClassServer,
		"Error reading response: malformed server-sent event JSON.": pijson.ClassServer,
		"Expected property name or '}' in JSON at position 1":       pijson.ClassServer,

		"terminated": pijson.ClassNetwork,
		"terminated: other side closed (UND_ERR_SOCKET)":        pijson.ClassNetwork,
		"terminated: Body Timeout Error (UND_ERR_BODY_TIMEOUT)": pijson.ClassNetwork,
		"Connection error.: other side closed (UND_ERR_SOCKET)": pijson.ClassNetwork,
		"Request timed out.: Headers Timeout Error":             pijson.ClassNetwork,
		"Stream ended without finish_reason":                    pijson.ClassNetwork,
		"fetch failed":                                          pijson.ClassNetwork,
		"getaddrinfo ENOTFOUND api.example.com":                 pijson.ClassNetwork,
		"read ECONNRESET":                                       pijson.ClassNetwork,
		"connect ECONNREFUSED 127.0.0.1:9":                      pijson.ClassNetwork,

		"400 This model's maximum context length is 8192 tokens.": pijson.ClassContextOverflow,
		"prompt is too long: 210000 tokens > 200000 maximum":      pijson.ClassContextOverflow,
		`400: {"code":"context_length_exceeded"}`:                 pijson.ClassContextOverflow,
		"413 Payload Too Large":                                   pijson.ClassContextOverflow,

		"Provider finish_reason: content_filter": pijson.ClassFiltered,

		"Error: Unknown provider \"nope\"": pijson.ClassModelUnknown,
		"404: {\"message\":\"no route\"}":  pijson.ClassModelUnknown,
		"Model not found: sim/nosuch":      pijson.ClassModelUnknown,
		"Error: Model \"nowhere/plain\" not found. Use --list-models to see available models.": pijson.ClassModelUnknown,
		`404 {"error":{"code":"model_not_found"}}`:                                             pijson.ClassModelUnknown,
		"Error: No models available. Set an API key":                                           pijson.ClassModelUnknown,

		"Lock file is already being held": pijson.ClassStartContention,
		"No API key found for sim.\nWarning: could not read auth.json: Lock file is already being held": pijson.ClassStartContention,

		"Error: Unknown option: --no-approve":                                                     pijson.ClassStartFailure,
		"SyntaxError: The requested module 'node:fs' does not provide an export named 'globSync'": pijson.ClassStartFailure,
		"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory":       pijson.ClassKilled,
	} {
		if got := pijson.Classify(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func TestEveryClassHasASentenceAndIsListedOnce(t *testing.T) {
	t.Parallel()
	seen := map[pijson.Class]bool{}
	for _, c := range pijson.Classes() {
		if seen[c] || c == pijson.ClassNone || c.Sentence() == "" || strings.HasSuffix(c.Sentence(), ".") {
			t.Errorf("class %q: sentence %q, seen %t", c, c.Sentence(), seen[c])
		}
		seen[c] = true
	}
	if len(seen) != 23 {
		t.Errorf("%d classes", len(seen))
	}
	if pijson.ClassNone.Retryable() || pijson.ClassNone.Sentence() != "" {
		t.Error("no failure is no class of failure")
	}
	retryable := []pijson.Class{
		pijson.ClassRateLimit, pijson.ClassOverloaded, pijson.ClassServer, pijson.ClassNetwork, pijson.ClassStartContention,
		pijson.ClassKilled, pijson.ClassNoFirstEvent, pijson.ClassSilent, pijson.ClassOrchestratorLost,
	}
	for _, c := range retryable {
		if !c.Retryable() {
			t.Errorf("%s must be retryable", c)
		}
		delete(seen, c)
	}
	for c := range seen {
		if c.Retryable() {
			t.Errorf("%s must not be retryable", c)
		}
	}
}

func TestTheWaitAProviderAsksForIsFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"":                              0,
		"429 slow down":                 0,
		"Retry-After: 3":                3 * time.Second,
		`{"retry_after": 1.5}`:          1500 * time.Millisecond,
		`"retryDelay": "34s"`:           34 * time.Second,
		"Please try again in 350ms.":    350 * time.Millisecond,
		"please retry in 2 minutes":     2 * time.Minute,
		"Try again in 3 hours":          3 * time.Hour,
		"retry after 20 seconds":        20 * time.Second,
		"try again in 999999999 h":      24 * time.Hour,
		"try again in 99999999999999 s": 0,
		"we will retry in a moment":     0,
	} {
		if got := pijson.RetryAfter(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
