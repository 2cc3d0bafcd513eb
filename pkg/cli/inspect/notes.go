package inspect

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/spelling"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// noteFunc writes something beside the results.
type noteFunc func(format string, args ...any)

// noteMode says that what follows about an operator is not what run does.
func noteMode(file *load.File, note noteFunc) {
	if file.Mode == config.ModeObserve {
		note("operator %s: mode is Observe, so run does none of this; this is what it would do with mode: Enforce",
			file.Metadata.Name)
	}
}

// noteRequirements says which versions configs require. Those that the API server lacks were refused before.
func noteRequirements(cfg *rest.Config, files []*load.File, note noteFunc) error {
	if !slices.ContainsFunc(files, func(f *load.File) bool { return f.Requires != nil }) {
		return nil
	}
	options, err := command.LiveKinds(cfg)
	if err != nil {
		return err
	}
	for _, f := range files {
		list, err := compile.Requirements(f, options)
		if err != nil {
			return err
		}
		var texts []string
		if f.Requires != nil && f.Requires.Corollary != "" {
			texts = append(texts, "corollary "+f.Requires.Corollary)
		}
		for _, r := range list {
			texts = append(texts, r.Name+" "+r.Wanted)
		}
		if len(texts) > 0 {
			note("operator %s requires %s: all are there", f.Metadata.Name, strings.Join(texts, ", "))
		}
	}
	return nil
}

// noteEmpty says why nothing follows about an operator, and what is in doubt of what follows.
func noteEmpty(v *survey.Survey, note noteFunc) {
	if why := v.Doubt(); why != "" {
		note("operator %s: %s: run deletes what belongs to the missing rows only after a confirmation",
			v.Pipeline().Name, why)
	}
	if len(v.Refs()) > 0 {
		return
	}
	p := v.Pipeline()
	where := ""
	if p.Upstream.Namespaced && len(p.Config.Watch.Namespaces) > 0 {
		where = " in namespace " + spelling.Either(p.Config.Watch.Namespaces)
	}
	selected := ""
	if w := p.Config.Watch; w.LabelSelector != nil || w.NamespaceSelector != nil || len(w.MatchConditions) > 0 {
		selected = " that its watch selects"
	}
	note("operator %s: no %s%s%s", p.Name, p.Upstream.GVK.Kind, where, selected)
}

// noteUnknown names objects about which nothing follows since a match condition cannot be evaluated for them.
func noteUnknown(v *survey.Survey, note noteFunc) {
	const shown = 3
	unknown := v.Unknown()
	for i, ref := range slices.SortedFunc(maps.Keys(unknown), operator.Ref.Compare) {
		if i == shown {
			note("operator %s: of %d more it is not known either", v.Pipeline().Name, len(unknown)-shown)
			return
		}
		note("operator %s: %s %s: %s: %v", v.Pipeline().Name, v.Pipeline().Upstream.GVK.Kind, ref,
			findings.LeftAsItIs, unknown[ref])
	}
}
