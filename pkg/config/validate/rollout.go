package validate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/config/staged"
)

var stepRE = regexp.MustCompile(forms.StepPattern)

func checkRollout(v *validator) {
	r := v.Rollout
	if r == nil {
		return
	}
	switch {
	case v.Mode == config.ModeObserve:
		v.Add("rollout", "remove it, or set mode to Enforce", "in mode Observe nothing is applied, so that no step would end")
	case v.Source != nil:
		v.Add("rollout", "remove it; guard holds what changes too much",
			"rows have no status that says whether they are Ready")
	case v.Conventions.Rollout == nil && !v.unread:
		v.Add("rollout", "name an annotation in conventions.rollout.annotation",
			"nothing on the objects would say which of them are moved: a restart would begin again")
	}
	checkSteps(v, r.Steps)
	if r.Pause < 0 {
		v.Add("rollout.pause", "write 0s or more", "%s is negative", r.Pause)
	}
	if r.ProgressDeadline < common.Duration(time.Second) && !v.Reported("rollout.progressDeadline") {
		v.Add("rollout.progressDeadline", "write at least 1s", "%s is too short: nothing is Ready at once",
			r.ProgressDeadline)
	}
	if r.MaxFailures < 0 {
		v.Add("rollout.maxFailures", "write 0 or more", "%d is negative", r.MaxFailures)
	}
	checkConfirm(v, "rollout.control", r.Control)
	if r.Control != nil && v.Guard != nil && v.Guard.Confirm != nil && *r.Control == *v.Guard.Confirm {
		v.Add("rollout.control.key", "choose another key", "%s is that of guard.confirm too", r.Control.Key)
	}
}

// checkSteps checks that steps grow: numbers and percentages each for themselves, since nobody knows here how many
// upstreams there are.
func checkSteps(v *validator, steps []staged.Step) {
	if len(steps) == 0 && !v.Reported("rollout.steps") {
		v.Add("rollout.steps", "write the steps, such as [1, 5%, 25%, 100%]", "no step is given")
	}
	before := map[bool]int{}
	for i, step := range steps {
		at := fmt.Sprintf("rollout.steps[%d]", i)
		if step == "" { // which is reported
			continue
		}
		if !stepRE.MatchString(string(step)) {
			v.Add(at, "write a number of upstreams from 1, or a percentage from 1% to 100%", "%q is no step",
				document.Clip(string(step)))
			continue
		}
		text, isShare := strings.CutSuffix(string(step), "%")
		n, _ := strconv.Atoi(text)
		if n <= before[isShare] {
			v.Add(at, "steps are cumulative: write more than in the one before", "%s is not more than %d", step, before[isShare])
		}
		before[isShare] = n
	}
}
