package compaction

// unsafeCuts tells for each message whether the conversation from it on would be
// refused by a model, or not be found by Pi. The place behind the last message, where
// nothing is kept, is never unsafe.
//
// A model wants the results of an assistant message's calls directly behind it, each
// call answered once. A result, therefore, is no beginning. And what breaks the rule
// may not be kept at all, so the cut has to come after it.
func unsafeCuts(messages []message) []bool {
	sound := 0                // the first message behind all that breaks the rule
	open := map[string]bool{} // calls of the last assistant message without a result
	caller := 0
	settle := func() {
		if len(open) > 0 {
			sound = max(sound, caller+1)
			clear(open)
		}
	}
	for i, m := range messages {
		if m.role == roleResult {
			if !open[m.answers] {
				sound = i + 1
			}
			delete(open, m.answers)
			continue
		}
		settle()
		caller = i
		for _, id := range m.callIDs {
			if open[id] { // two calls of one id cannot both be answered
				sound = i + 1
			}
			open[id] = true
		}
	}
	settle()

	unsafe := make([]bool, len(messages)+1)
	for i, m := range messages {
		unsafe[i] = i < sound || m.role == roleResult || !m.unique
	}
	return unsafe
}
