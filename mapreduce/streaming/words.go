package streaming

// words splits a command as Hadoop does: only blanks separate words, ' and " group, and there is no other quoting. A quote
// that begins or ends a group also ends a word. Empty words do not count.
func words(command string) (all []string) {
	start, open := 0, byte(0)
	for i := 0; i <= len(command); i++ {
		ends := i == len(command)
		if !ends {
			switch c := command[i]; {
			case open == 0 && (c == '\'' || c == '"'):
				open, ends = c, true
			case open != 0 && c == open:
				open, ends = 0, true
			case open == 0 && c == ' ':
				ends = true
			}
		}
		if !ends {
			continue
		}
		if i > start {
			all = append(all, command[start:i])
		}
		start = i + 1
	}
	return all
}
