package act

import (
	"context"

	"github.com/corollary-dev/corollary/pkg/operator"
)

var actions = map[operator.Action]func(*action, context.Context) error{
	operator.ActionCreate: (*action).create, operator.ActionApply: (*action).update,
	operator.ActionDelete:  (*action).remove,
	operator.ActionRelease: (*action).release, operator.ActionReplaceMarks: (*action).replaceMarks,
	operator.ActionMarkOwner: (*action).markOwner, operator.ActionCompare: (*action).compareByDryRun,
}

// Do makes the requests for one outcome.
func (a *Actor) Do(ctx context.Context, o operator.Outcome) Result {
	x := a.begin(o)
	if act := actions[o.Action]; act != nil {
		x.Err = act(x, ctx)
	}
	return *x.Result
}
