package main

import "charm.land/bubbles/v2/key"

// watchKeys are the keys of `pilothouse watch`.
type watchKeys struct {
	up, down, pageUp, pageDown, top, bottom key.Binding
	open, other, fold                       key.Binding
	filter, cancel, help, quit              key.Binding
}

func newWatchKeys() watchKeys {
	bind := func(keys []string, shown, what string) key.Binding {
		return key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, what))
	}
	return watchKeys{
		up:       bind([]string{"up", "k"}, "↑/k", "up"),
		down:     bind([]string{"down", "j"}, "↓/j", "down"),
		pageUp:   bind([]string{"pgup", "ctrl+b"}, "pgup", "a page up"),
		pageDown: bind([]string{"pgdown", "ctrl+f", "space"}, "pgdn", "a page down"),
		top:      bind([]string{"home", "g"}, "g", "first"),
		bottom:   bind([]string{"end", "G"}, "G", "last, and follow"),
		open:     bind([]string{"enter"}, "enter", "open"),
		other:    bind([]string{"tab", "shift+tab"}, "tab", "other pane"),
		fold:     bind([]string{"left", "right", "h", "l"}, "←/→", "fold"),
		filter:   bind([]string{"/"}, "/", "filter"),
		cancel:   bind([]string{"c"}, "c", "cancel"),
		help:     bind([]string{"?"}, "?", "help"),
		quit:     bind([]string{"q", "ctrl+c"}, "q", "quit"),
	}
}

// ShortHelp is the line at the bottom.
func (k watchKeys) ShortHelp() []key.Binding {
	return []key.Binding{k.help, k.quit, k.open, k.other, k.cancel, k.filter}
}

// FullHelp is the page of all keys.
func (k watchKeys) FullHelp() [][]key.Binding {
	return [][]key.Binding{
		{k.up, k.down, k.pageUp, k.pageDown, k.top, k.bottom},
		{k.open, k.other, k.fold, k.filter, k.cancel, k.help, k.quit},
	}
}
