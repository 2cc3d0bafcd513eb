package operator_test

import (
	"testing"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// TestStateTraits: each state has a row, so that whoever adds one says what it means for an object that exists.
func TestStateTraits(t *testing.T) {
	const applied, leftAlone, neither = "applied", "left alone", ""
	want := map[operator.State][]string{
		operator.StateInvalid:        {leftAlone},
		operator.StateRenderFailed:   {leftAlone},
		operator.StateWaiting:        {leftAlone},
		operator.StateCreate:         {neither},
		operator.StateUpdate:         {neither},
		operator.StateRepair:         {neither},
		operator.StateRecreate:       {neither},
		operator.StateInSync:         {applied},
		operator.StateDrifted:        {applied},
		operator.StateStale:          {applied, leftAlone},
		operator.StateConflict:       {neither},
		operator.StateContested:      {neither},
		operator.StatePaused:         {leftAlone},
		operator.StateUnwanted:       {neither},
		operator.StateSuperseded:     {neither},
		operator.StateLeftover:       {neither},
		operator.StateDelete:         {neither},
		operator.StateDeleteFirst:    {neither},
		operator.StateRelease:        {neither},
		operator.StateBeforeRunning:  {neither},
		operator.StateBeforeFinished: {neither},
		operator.StateBeforeFailed:   {neither},
		operator.StateBeforeTimedOut: {neither},
	}
	for _, s := range operator.States() {
		traits, ok := want[s]
		if !ok {
			t.Errorf("%s has no row", s)
		}
		for trait, has := range map[string]bool{applied: s.IsApplied(), leftAlone: s.IsLeftAlone()} {
			if wants := len(traits) > 0 && (traits[0] == trait || len(traits) > 1 && traits[1] == trait); wants != has {
				t.Errorf("%s: %s is %v", s, trait, has)
			}
		}
	}
}
