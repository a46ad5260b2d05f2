package main

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

const (
	// wideScreen is from how many columns on list and transcript stand side by side.
	wideScreen = 120
	// What a screen needs to show anything of use.
	smallestWidth, smallestHeight = 40, 10
)

// watchPlace is where things are on the screen.
type watchPlace struct {
	wide                  bool
	listWidth, listHeight int
	paneWidth, paneHeight int
	rows                  int // for list and pane together
}

func (s *watchScreen) place() watchPlace {
	rows := max(1, s.height-2) // the line of totals and that of keys
	if s.width >= wideScreen {
		list := min(max(s.width*2/5, 64), 84)
		return watchPlace{wide: true, listWidth: list, listHeight: rows, paneWidth: s.width - list - 2, paneHeight: rows - 1, rows: rows}
	}
	list := max(3, rows*2/5)
	return watchPlace{listWidth: s.width, listHeight: list, paneWidth: s.width, paneHeight: max(1, rows-list-1), rows: rows}
}

// View draws the screen.
func (s *watchScreen) View() tea.View {
	v := tea.NewView(s.draw())
	v.AltScreen = true
	v.WindowTitle = "pilothouse watch"
	return v
}

func (s *watchScreen) draw() string {
	switch {
	case s.width == 0:
		return ""
	case s.width < smallestWidth || s.height < smallestHeight:
		return fmt.Sprintf("%d×%d is needed", smallestWidth, smallestHeight)
	}
	place := s.place()
	row := s.list.row()
	s.pane.layOut(row, place.paneWidth, place.paneHeight)
	list := s.list.draw(place.listWidth, place.listHeight, s.frame, !s.reading)
	title := s.paneTitle(row, place)
	pane := strings.Split(s.pane.view.View(), "\n")
	lines := []string{s.headline()}
	switch {
	case s.helping:
		lines = append(lines, s.helpLines(place.rows)...)
	case place.wide:
		for i := range place.rows {
			right := title
			if i > 0 {
				right = ""
				if i <= len(pane) {
					right = pane[i-1]
				}
			}
			lines = append(lines, list[i]+faint.Render("│")+" "+right)
		}
	default:
		lines = append(append(append(lines, list...), title), pane...)
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, s.footer()), "\n")
}

// headline has the totals, or what is wrong.
func (s *watchScreen) headline() string {
	daemon := s.view.Daemon
	if !daemon.Connected {
		return bad.Reverse(true).Render(fit(" "+plainLine(daemon.Note), s.width))
	}
	t := s.view.Totals
	parts := []string{fmt.Sprintf("%d running", t.Running), fmt.Sprintf("%d queued", t.Queued), fmt.Sprintf("%d done", t.Done)}
	if t.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", t.Failed))
	}
	parts = append(parts, tokens(t.Usage))
	if cost := costOf(t.Usage.Cost); cost != "" {
		parts = append(parts, cost)
	}
	left := " pilothouse  " + strings.Join(parts, " · ")
	right := fmt.Sprintf("daemon %s, process %d ", plainLine(daemon.Version), daemon.PID)
	if room := s.width - lipgloss.Width(left) - 2; room < lipgloss.Width(right) {
		right = ""
	}
	return bold.Render(fit(left, s.width-lipgloss.Width(right))) + faint.Render(right)
}

func (s *watchScreen) paneTitle(row *watchRow, place watchPlace) string {
	title := s.pane.title(row)
	if total := s.pane.view.TotalLineCount(); total > place.paneHeight && !s.pane.following {
		title += fmt.Sprintf(" · %d%%", int(s.pane.view.ScrollPercent()*100))
	}
	if title != "" {
		title += " "
	}
	if !place.wide {
		title = "── " + title
	}
	line := ansi.Truncate(title, place.paneWidth, "…")
	line += strings.Repeat("─", max(0, place.paneWidth-lipgloss.Width(line)))
	if s.reading {
		return bold.Render(line)
	}
	return faint.Render(line)
}

func (s *watchScreen) helpLines(rows int) []string {
	s.help.SetWidth(s.width - 2)
	lines := append([]string{""}, strings.Split(s.help.FullHelpView(s.keys.FullHelp()), "\n")...)
	lines = append(lines, "", faint.Render("any key goes back"))
	for i := range lines {
		lines[i] = cut("  "+lines[i], s.width)
	}
	return lines[:min(len(lines), rows)]
}

// footer is the question, the filter, what came of an order, or the keys.
func (s *watchScreen) footer() string {
	switch {
	case s.question != nil:
		return bold.Reverse(true).Render(fit(" "+s.question.String(), s.width))
	case s.typing:
		return fit(" filter: "+s.list.filter+"▏", s.width)
	case s.note != "":
		return fit(" "+plainLine(s.note), s.width)
	}
	text := " "
	if s.list.filter != "" {
		text += "filter: " + s.list.filter + " (esc clears) · "
	}
	s.help.SetWidth(s.width - lipgloss.Width(text) - 1)
	return fit(text+s.help.ShortHelpView(s.keys.ShortHelp()), s.width)
}
