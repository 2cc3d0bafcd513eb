package selection

import (
	"slices"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// TestBackupOrder: what follows from upstreams comes after all of them, also where several configs have downstreams of
// one kind. Its owner is found among what was written before.
func TestBackupOrder(t *testing.T) {
	source := must.Get(kinds.Offline()).In(t)
	file := func(watch string, downstreams ...string) *load.File {
		f := &load.File{Operator: config.Operator{Watch: config.Watch{APIVersion: "v1", Kind: watch}}}
		for _, kind := range downstreams {
			f.Downstreams = append(f.Downstreams, config.Downstream{APIVersion: "v1", Kind: kind})
		}
		return f
	}
	secretsOfBoth := []*load.File{file("ServiceAccount", "Secret", "ConfigMap"), file("Service", "Secret", "ConfigMap")}
	chain := []*load.File{file("ServiceAccount", "ConfigMap"), file("Namespace", "ServiceAccount", "Secret"), file("Service", "Secret")}
	for name, files := range map[string][]*load.File{"two": secretsOfBoth, "a chain": chain} {
		s := &selecting{Options: Options{Kinds: source, Downstreams: true, Secrets: true}, backup: &backup.Backup{}}
		must.Do(t, s.operators(t.Context(), files))
		for _, k := range s.backup.Kinds {
			if slices.ContainsFunc(k.Choices, func(c backup.Choice) bool { return c.Owned && c.Selector != nil }) {
				t.Errorf("%s: %s is chosen by labels, which may have been others once", name, k.GVK.Kind)
			}
		}
		position := func(kind string) int {
			return slices.IndexFunc(s.backup.Kinds, func(k backup.Selection) bool { return k.GVK.Kind == kind })
		}
		for _, owner := range files {
			for _, d := range owner.Downstreams {
				if position(owner.Watch.Kind) >= position(d.Kind) {
					t.Errorf("%s: %s of %s is at %d, its owner at %d", name, d.Kind, owner.Watch.Kind, position(d.Kind), position(owner.Watch.Kind))
				}
			}
		}
	}
}
