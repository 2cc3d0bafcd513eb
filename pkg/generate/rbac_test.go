package generate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// TestRights derives the rights of made-up configs. The chart's test derives those of the same configs from values.
func TestRights(t *testing.T) {
	golden.Cases(t, "../../testdata/rights/*.txtar", func(t *testing.T, c *golden.Case) {
		files, o := caseConfigs(t, c)
		rights := must.Get(Rights(files, o)).In(t)
		c.Want(t, "rights", table(rights))
		release := must.Get(ReleaseRights(files, o)).In(t)
		if len(release.Grants) > 0 {
			c.Want(t, "release", table(release))
		} else {
			c.WantNone(t, "release")
		}
	})
}

// caseConfigs are the operators of a case and what they depend on.
func caseConfigs(t *testing.T, c *golden.Case) ([]*load.File, RBACOptions) {
	t.Helper()
	dir := t.TempDir()
	var configs, crds []string
	for _, f := range c.Files {
		path := filepath.Join(dir, f.Name)
		must.Do(t, os.WriteFile(path, f.Data, 0o600))
		switch {
		case f.Name == "crds.yaml":
			crds = append(crds, path)
		case bytes.Contains(f.Data, []byte("\nkind: Operator\n")):
			configs = append(configs, path)
		}
	}
	files, problems := load.Operators(load.Options{Files: configs})
	if len(problems) > 0 {
		t.Fatalf("loading:\n%v", problems)
	}
	source := must.Get(kinds.Offline(crds...)).In(t)
	return files, RBACOptions{Kinds: compile.WithDescribed(files, source), Process: Identity{"system", "process"}, Lease: "lead"}
}

// table is rights to be read at a glance: a line a rule, below whose it is and where.
func table(r *RBAC) string {
	var b strings.Builder
	for _, g := range r.Grants {
		where, operator := "everywhere", ""
		if g.Namespace != "" {
			where = "in " + g.Namespace
		}
		if g.Operator != "" {
			operator = " for " + g.Operator
		}
		fmt.Fprintf(&b, "%s %s%s:\n", g.To, where, operator)
		for _, rule := range g.Rules {
			resource := rule.Resource
			if rule.Group != "" {
				main, sub, _ := strings.Cut(rule.Resource, "/")
				if resource = main + "." + rule.Group; sub != "" {
					resource += "/" + sub
				}
			}
			if len(rule.Names) > 0 {
				resource += " " + strings.Join(rule.Names, " ")
			}
			fmt.Fprintf(&b, "  %s: %s (%s)\n", resource, strings.Join(rule.Verbs, " "), strings.Join(rule.For, ", "))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	return b.String()
}
