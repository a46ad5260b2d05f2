package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pilothouse/supervisor"
)

// plansActions lists the actions of the `plans` tool for help and completion.
var plansActions = []string{
	"init", "show", "set-language", "set-artifact-root", "set-refs-root", "set-graph-enabled", "set-role",
	"start-run", "set-status", "record-decision", "record-ref", "record-subagent", "record-checkpoint",
}

func (a *app) plansCommand() *cobra.Command {
	var object string
	action := &supervisor.PlansAction{}
	c := &cobra.Command{
		Use:   "plans ACTION [--param value …] | plans --json '{\"action\":…}'",
		Short: "Read and change the planning state of a workspace",
		Long: `plans is the plans tool on the command line: the same actions, parameters and
result objects. Parameters are flags (--languageSource or --language-source);
decision, ref, subagent and checkpoint take a JSON object.

Actions: ` + strings.Join(plansActions, ", ") + `.`,
		Example: `  pilothouse plans init
  pilothouse plans set-role --role reviewer --confirmed true --modelSelector inherit
  pilothouse plans --json '{"action":"start-run","topic":"Cache","skill":"plan-small","requestText":"Add a cache"}'`,
		ValidArgs: plansActions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := readPlansAction(action, object, args); err != nil {
				return err
			}
			return a.withBackend(c.Context(), func(b backend) error {
				result, err := b.Plans(c.Context(), a.session(), *action)
				if err != nil {
					return fmt.Errorf("plans %s: %w", action.Action, err)
				}
				return a.printJSON(result)
			})
		},
	}
	c.Flags().StringVar(&object, "json", "", "the whole call as one JSON `object`")
	addParams(c.Flags(), action)
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(camelCase(name))
	})
	return c
}

func readPlansAction(action *supervisor.PlansAction, object string, args []string) error {
	switch {
	case object != "" && len(args) > 0:
		return &usageError{fmt.Errorf("give the action as an argument or in --json, not both")}
	case object != "":
		decoder := json.NewDecoder(strings.NewReader(object))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(action); err != nil {
			return &usageError{fmt.Errorf("--json is not a plans call: %w", err)}
		}
		if decoder.More() {
			return &usageError{fmt.Errorf("--json holds more than one object")}
		}
	case len(args) == 1:
		action.Action = args[0]
	}
	if action.Action == "" {
		return &usageError{fmt.Errorf("plans takes one action; see `pilothouse plans --help`")}
	}
	return nil
}

// addParams makes a flag of every parameter of the tool, so that the two cannot
// drift apart.
func addParams(flags *pflag.FlagSet, action *supervisor.PlansAction) {
	fields := reflect.ValueOf(action).Elem()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		if name == "action" || name == "workdir" { // the argument, and a global flag
			continue
		}
		flags.Var(&paramValue{fields.Field(i)}, name, paramUsage(fields.Field(i)))
	}
}

func paramUsage(field reflect.Value) string {
	switch {
	case field.Kind() == reflect.String:
		return ""
	case field.Type().Elem().Kind() == reflect.Bool:
		return "`true|false`"
	default:
		return "`JSON` object"
	}
}

// paramValue sets one field of a plans call from a flag.
type paramValue struct{ field reflect.Value }

func (p *paramValue) String() string { return "" }

func (p *paramValue) Type() string { return "string" }

func (p *paramValue) Set(text string) error {
	if p.field.Kind() == reflect.String {
		p.field.SetString(text)
		return nil
	}
	value := reflect.New(p.field.Type().Elem())
	if value.Elem().Kind() == reflect.Bool {
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		value.Elem().SetBool(b)
	} else {
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(value.Interface()); err != nil {
			return err
		}
	}
	p.field.Set(value)
	return nil
}

// camelCase turns language-source into languageSource.
func camelCase(name string) string {
	words := strings.Split(name, "-")
	for i := 1; i < len(words); i++ {
		if words[i] != "" {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
	}
	return strings.Join(words, "")
}
