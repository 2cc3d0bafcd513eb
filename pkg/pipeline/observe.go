package pipeline

import "github.com/corollary-dev/corollary/pkg/config"

// Observing tells whether the config asks to decide and report, and to write nothing.
func (p *Pipeline) Observing() bool { return p.Config.Mode == config.ModeObserve }

// observed tells of an outcome that something would be done, or would have to be asked, if it were not for the mode.
func observed(o Outcome) bool {
	return o.Action != ActionNone || o.State == StateWaiting && o.Theirs
}

// would says of what an outcome asks for that it is not done.
func would(o Outcome, differences string) string {
	text := o.Message
	switch {
	case o.Action == ActionNone:
		return text
	case o.State == StateRecreate:
		text = "would be deleted and made again: " + text
	case o.State == StateRepair:
		text = "would be repaired: " + text
	case o.Action == ActionCreate:
		text = "would be created: " + text
	case o.Action == ActionDelete:
		text = "would be deleted: " + text
	case o.Action == ActionRelease:
		text = "would be released: " + text
	default:
		text = "would be updated: " + text
	}
	if differences != "" {
		text += " (" + differences + ")"
	}
	return text
}
