package supervisor

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"pilothouse/supervisor/execution"
)

// choiceParams are the parameters of the tool ask_choice (spec: execution 5.6).
type choiceParams struct {
	Question     string         `json:"question"`
	Options      []choiceOption `json:"options"`
	AllowOther   *bool          `json:"allowOther"`   // true by default
	AutoComplete *bool          `json:"autoComplete"` // true by default
	// QuestionID makes the question durable; without one only its answer is.
	QuestionID string `json:"questionId"`
	Purpose    string `json:"purpose"`
	// Trailing replaces the last fixed option.
	Trailing string `json:"trailing"`
	Workdir  string `json:"workdir"`
}

// choiceOption is one answer to choose.
type choiceOption struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Recommended bool   `json:"recommended"`
}

// trailingLoop offers to let rounds of review and revision run by themselves.
const trailingLoop = "auto-refine-loop"

// The fixed options.
const (
	fixedOther        = "Other…"
	fixedAutoComplete = "Auto-complete"
	fixedLoop         = "Auto-refine loop"
)

func parseChoice(args json.RawMessage) (choiceParams, error) {
	var p choiceParams
	if err := json.Unmarshal(args, &p); err != nil {
		return p, inputErrorf("ask_choice: the parameters cannot be read: %v", err)
	}
	if strings.TrimSpace(p.Question) == "" || len(p.Options) == 0 {
		return p, inputErrorf("ask_choice needs a question and at least one option")
	}
	for i, option := range p.Options {
		if strings.TrimSpace(option.Label) == "" {
			return p, inputErrorf("ask_choice: option %d has no label", i+1)
		}
	}
	if p.QuestionID != "" {
		if err := checkQuestionID(p.QuestionID); err != nil {
			return p, err
		}
	}
	if p.Trailing != "" && p.Trailing != trailingLoop {
		return p, inputErrorf("ask_choice: trailing %q is not %q", p.Trailing, trailingLoop)
	}
	return p, nil
}

func (p choiceParams) labels() []string {
	labels := make([]string, len(p.Options))
	for i, option := range p.Options {
		labels[i] = option.Label
	}
	return labels
}

// recommended is the first option that is flagged, else the first.
func (p choiceParams) recommended() int {
	return max(0, slices.IndexFunc(p.Options, func(o choiceOption) bool { return o.Recommended }))
}

// automatic tells whether the recommended option may be taken without asking.
func (p choiceParams) automatic() bool {
	return (p.AutoComplete == nil || *p.AutoComplete) && p.Trailing == "" && !p.personal()
}

// fixed are the options behind those of the question.
func (p choiceParams) fixed() []string {
	var fixed []string
	if p.AllowOther == nil || *p.AllowOther {
		fixed = append(fixed, fixedOther)
	}
	switch {
	case p.Trailing == trailingLoop:
		fixed = append(fixed, fixedLoop)
	case p.automatic():
		fixed = append(fixed, fixedAutoComplete)
	}
	return fixed
}

// personal tells whether only a person may answer: it is about carrying the plan out,
// or about something that leaves the workspace or cannot be taken back (seed: never
// for execution, installs, publishing, deployment, merge, push, credentials). The
// purpose is what the model declares; the words of the question and of the option that
// would be taken count as well, because a model may declare anything. A word too many
// costs one question, one too few an action that nobody has allowed.
func (p choiceParams) personal() bool {
	if p.QuestionID == execution.TerminationQuestionID { // it is the user who pays for the rounds
		return true
	}
	text := strings.ToLower(strings.Join([]string{p.Purpose, p.Question, p.Options[p.recommended()].Label}, "\n"))
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if slices.ContainsFunc(personalStems, func(stem string) bool { return strings.HasPrefix(word, stem) }) {
			return true
		}
	}
	return slices.ContainsFunc(personalPhrases, func(phrase string) bool { return strings.Contains(text, phrase) })
}

// personalStems begin words, personalPhrases stand anywhere: some languages put no
// spaces between words.
var (
	personalStems = []string{
		"execut", "install", "uninstall", "reinstall", "publish", "republish", "deploy", "redeploy", "merg", "push", "credential", "password", "passphrase",
	}
	personalPhrases = []string{
		"api key", "api-key", "access token", "secret key", "sign in", "log in", "release to",
		"执行", "安装", "发布", "部署", "合并", "推送", "凭证", "凭据", "密码", "密钥",
		"執行", "安裝", "發布", "發佈", "合併", "憑證", "密碼", "密鑰",
	}
)
