package lanestest

import (
	"context"
	"encoding/json"
	"fmt"

	"pilothouse/lanes"
	"pilothouse/lanes/proc"
)

// StartSession implements lanes.SessionHost. The child follows the same script as any.
func (h *Host) StartSession(ctx context.Context, spec lanes.Spec, traceparent string) (lanes.SessionChild, error) {
	child, err := h.Start(ctx, spec, traceparent)
	if err != nil {
		return nil, err
	}
	scripted, ok := child.(*Child)
	if !ok { // a defect of this package
		return nil, fmt.Errorf("the host started a %T", child)
	}
	return scripted, nil
}

// Say implements lanes.SessionChild.
func (c *Child) Say(line []byte) error {
	select {
	case c.said <- string(line):
		return nil
	default:
		return proc.ErrUnread
	}
}

// HangUp implements lanes.SessionChild.
func (c *Child) HangUp() { c.overOnce.Do(func() { close(c.over) }) }

// Command is a line that was said to a session.
type Command struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Command waits for the next command. It is false when the child is to leave first.
func (c *Child) Command() (Command, bool) {
	select {
	case line := <-c.said:
		var command Command
		if err := json.Unmarshal([]byte(line), &command); err != nil {
			return Command{Type: line}, true // fails whatever test looks at it
		}
		return command, true
	case <-c.over:
	case <-c.term:
	}
	return Command{}, false
}

// Accept prints pi's yes to a command.
func (c *Child) Accept(command Command) {
	c.Print(fmt.Sprintf(`{"id":%q,"type":"response","command":%q,"success":true,"data":{"disposition":"started"}}`, command.ID, command.Type))
}

// Refuse prints pi's no.
func (c *Child) Refuse(command Command, reason string) {
	c.Print(fmt.Sprintf(`{"id":%q,"type":"response","command":%q,"success":false,"error":%s}`, command.ID, command.Type, quote(reason)))
}

// Conversing is a session that answers each prompt with what answer gives, and leaves
// when it is hung up.
func Conversing(answer func(prompt string) []string) Script {
	return func(c *Child) proc.Exit {
		for {
			command, ok := c.Command()
			if !ok {
				break
			}
			c.Accept(command)
			c.Print(answer(command.Message)...)
		}
		select {
		case <-c.term:
			return Code(143)
		default:
			return Code(0)
		}
	}
}
