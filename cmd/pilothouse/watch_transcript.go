package main

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"pilothouse/lanes"
)

const (
	// transcriptKept is how much of a transcript is kept for the screen, in bytes of
	// its text. The oldest blocks go first.
	transcriptKept = 256 << 10
	// toolLines is how many lines of what a tool said are shown.
	toolLines = 20
)

// transcriptText is the transcript of a lane as it is drawn. It folds entries into
// blocks; only blocks that have grown are wrapped anew.
type transcriptText struct {
	blocks  []*transcriptBlock
	size    int
	dropped bool // the beginning is not kept
}

type transcriptBlock struct {
	first   lanes.TranscriptEntry // says what the block is
	text    strings.Builder
	isError bool
	lines   []string // as drawn
	width   int      // that lines are for, 0 when the block has grown since
}

func (t *transcriptText) take(entries []lanes.TranscriptEntry) {
	for _, e := range entries {
		b := t.block(e)
		// Text is made harmless here, once; a pair of line-break characters that two
		// entries share only draws a picture more.
		text := plainText(e.Text)
		b.text.WriteString(text)
		b.isError = b.isError || e.IsError
		b.width = 0
		t.size += len(text)
	}
	for t.size > transcriptKept && len(t.blocks) > 1 {
		t.size -= t.blocks[0].text.Len()
		t.blocks, t.dropped = t.blocks[1:], true
	}
}

// block finds the block that an entry goes on with, or begins one. Blocks of one turn
// may grow by turns.
func (t *transcriptText) block(e lanes.TranscriptEntry) *transcriptBlock {
	for i := len(t.blocks) - 1; i >= 0; i-- {
		first := t.blocks[i].first
		if first.Attempt != e.Attempt || first.Turn != e.Turn {
			break
		}
		if first.Key == e.Key && first.Type == e.Type {
			return t.blocks[i]
		}
	}
	e.Text = ""
	b := &transcriptBlock{first: e}
	t.blocks = append(t.blocks, b)
	return b
}

// draw returns the lines of the transcript for a width.
func (t *transcriptText) draw(width int) []string {
	var lines []string
	if t.dropped {
		lines = append(lines, faint.Render(fit("… what came before is not shown", width)), "")
	}
	attempt := 1
	for i, b := range t.blocks {
		if i > 0 {
			lines = append(lines, "")
		}
		if b.first.Attempt > attempt {
			attempt = b.first.Attempt
			lines = append(lines, bold.Render(fmt.Sprintf("attempt %d", attempt)), "")
		}
		if b.width != width {
			b.lines, b.width = b.draw(width), width
		}
		lines = append(lines, b.lines...)
	}
	return lines
}

func (b *transcriptBlock) draw(width int) []string {
	text := strings.TrimRight(b.text.String(), "\n ")
	tool := plainLine(b.first.Tool)
	switch b.first.Type {
	case "thinking":
		return hang(faint, "│ ", text, width, 0)
	case "tool-call":
		lines := hang(lipgloss.NewStyle(), "  ", text, width, toolLines)
		return append([]string{busy.Render(fit("▸ "+tool, width))}, lines...)
	case "tool-result":
		head := good.Render(fit("◂ "+tool, width))
		if b.isError {
			head = bad.Render(fit("✗ "+tool+" failed", width))
		}
		return append([]string{head}, hang(faint, "  ", text, width, toolLines)...)
	}
	return wrapLines(text, width)
}

// hang wraps a text behind a margin. Of more lines than limit (0 for none) it tells
// only how many there are.
func hang(style lipgloss.Style, margin, text string, width, limit int) []string {
	if text == "" {
		return nil
	}
	lines := wrapLines(text, width-lipgloss.Width(margin))
	if left := len(lines) - limit; limit > 0 && left > 0 {
		lines = append(lines[:limit:limit], "… "+count(left, "more line"))
	}
	for i, line := range lines {
		lines[i] = style.Render(margin + line)
	}
	return lines
}
