package explain

import (
	"fmt"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// notReady says why an object that has not changed since it was applied is not ready, each rule with its place in the
// config, and who can do something about it. While it is to be written that comes first, and says nothing of what is to
// be then.
func (e *explanation) notReady(p *compile.Pipeline, f *preview.Finding, c preview.Change, line func(string, ...any)) {
	if !c.State.IsApplied() && c.State != operator.StatePaused || !findings.HasObject(c) {
		return
	}
	fix, list := "look at it", findings.UnmetRules(p, f, c)
	for _, h := range list {
		word := "not ready"
		if h.Failed {
			word = "failed"
		}
		if h.Rule != "" {
			fix = "fix the object or the rule"
			word += ", says " + e.place(f.Operator, h.Rule)
		}
		line("%s: %s", word, h.Message)
	}
	if c.State == operator.StateInSync && (len(list) > 0 || c.Live.Status != kstatus.CurrentStatus) {
		line("everything is applied, and no write of the operator will change this: %s: kubectl describe %s",
			fix, describing(p, c))
	}
}

// place is the file and line of a text in an operator's config.
func (e *explanation) place(operator, path string) string {
	for _, f := range e.Files {
		if f.Metadata.Name == operator {
			file, line := f.TextPos(path)
			return fmt.Sprintf("%s:%d", file, line)
		}
	}
	return path
}

// describing are the arguments of kubectl describe for an object.
func describing(p *compile.Pipeline, c preview.Change) string {
	gvr := p.Downstreams[c.Index].Kind.GVR
	text := gvr.GroupResource().String() + " " + c.Target.Name
	if c.Target.Namespace != "" {
		text += " -n " + c.Target.Namespace
	}
	return text
}
