package findings

import (
	"context"
	"fmt"
	"strings"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// toDelete is the command that deletes what is left over, or what would be lost by that, in words that follow others.
func toDelete(f *preview.Finding, o Object) string {
	var inside []Object
	for _, c := range f.Changes {
		if !c.Theirs && c.State != operator.StateUnwanted {
			inside = append(inside, ofChange(c))
		}
	}
	for _, r := range f.Forgotten {
		inside = append(inside, Forgotten(r))
	}
	for _, other := range inside {
		if decide.Contains(o.Kind, o.At.Name, other.Kind, other.At) {
			return fmt.Sprintf("; do not delete it: %s would be deleted with it", other)
		}
	}
	command := "kubectl delete " + strings.ToLower(o.Kind.Kind)
	if o.Kind.Group != "" {
		command += "." + o.Kind.Group
	}
	if command += " " + o.At.Name; o.At.Namespace != "" {
		command += " -n " + o.At.Namespace
	}
	return "; to delete it: " + command
}

// invalidity says which rules refuse an upstream.
func invalidity(f *preview.Finding) string {
	return strings.Join(f.Desired.Invalid, "; ") + ": existing objects are left alone"
}

// HasObject reports whether there is an object of ours for a downstream that the config has.
func HasObject(c preview.Change) bool {
	return c.Live != nil && !c.Theirs && !c.Leftover && c.Index >= 0
}

// UnmetRules are the rules that keep an existing object of ours from being ready.
func UnmetRules(p *compile.Pipeline, f *preview.Finding, c preview.Change) []health.UnmetRule {
	if !HasObject(c) || f.Desired == nil {
		return nil
	}
	return p.UnmetRules(context.Background(), f.Desired, c.Object, f.Upstream, f.Inputs, c.Live)
}

// FinalizerText says what happens to the upstream's finalizer; empty if nothing does.
func FinalizerText(pl *compile.Pipeline, f *preview.Finding) string {
	name := pl.Config.Conventions.Finalizer
	switch f.Finalizer {
	case operator.FinalizerAdd:
		return name + " to be added"
	case operator.FinalizerRemove:
		return name + " to be removed"
	case operator.FinalizerSwap:
		return name + " to replace " + marks.PreviousFinalizer(pl.Settings)
	}
	return ""
}

// LeftAsItIs is what is done about an object of which it is not known whether it is an upstream.
const LeftAsItIs = "whether it is an upstream is not known, so nothing is changed, and what was made for it stays"
