//go:build controlplane

package backup_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
)

// rules are the rules of rights, each VERB RESOURCE.GROUP, as in the table of docs/backup.md.
func rules(rights []string) []rbacv1.PolicyRule {
	var list []rbacv1.PolicyRule
	for _, right := range rights {
		verb, resource, _ := strings.Cut(right, " ")
		name, group, _ := strings.Cut(resource, ".")
		group, subresource, _ := strings.Cut(group, "/")
		if subresource != "" {
			name += "/" + subresource
		}
		list = append(list, rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{name}})
	}
	return list
}

// without calls tell with each list that lacks one right.
func without(rights []string, tell func(lacking string, left []string)) {
	for i, right := range rights {
		tell(right, slices.Delete(slices.Clone(rights), i, i+1))
	}
}

// A user with the rights that docs/backup.md lists for `backup` can take a backup; without one of them the error names
// it.
func TestRightsOfBackup(t *testing.T) {
	t.Parallel()
	w := worldOn(t)
	w.thing("a")
	rights := []string{"list " + w.name(), "list configmaps", "get customresourcedefinitions.apiextensions.k8s.io"}
	path := filepath.Join(t.TempDir(), "backup")
	if _, _, err := w.backup(testkit.User(t, "all", rules(rights)...)).Run(t.Context(), path); err != nil {
		t.Error(err)
	}
	without(rights, func(lacking string, left []string) {
		_, _, err := w.backup(testkit.User(t, "most", rules(left)...)).Run(t.Context(), path)
		if err == nil || !strings.Contains(err.Error(), "rights are missing: "+lacking) {
			t.Errorf("without %s: %v", lacking, err)
		}
	})
	w.deleteAll(false)
}

// A user with the rights that docs/backup.md lists for `restore` can restore; without one of them nothing is written,
// and the error names it.
func TestRightsOfRestore(t *testing.T) {
	t.Parallel()
	w := worldOn(t)
	w.thing("a")
	w.thing("b")
	path := filepath.Join(t.TempDir(), "backup")
	w.save(path)
	before := w.contents()
	disaster := func(missing bool) {
		w.deleteAll(missing)
		if !missing {
			w.apply(w.things(), w.ns, map[string]any{"apiVersion": w.group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}})
		}
	}
	crds := "customresourcedefinitions.apiextensions.k8s.io"
	reads := []string{"get " + crds, // get of the kinds is for objects that someone creates meanwhile
		"list " + w.name(), "list configmaps"}
	writes := []string{"create " + w.name(), "patch " + w.name(), "patch " + w.name() + "/status", "create configmaps", "patch configmaps",
		"update " + w.name()}
	for _, test := range []struct {
		reason  string
		missing bool // the definition and the namespaces
		reads   []string
		writes  []string
		replace string
	}{
		{"the kind exists", false, reads, writes, backup.Replace},
		{"the kind and the namespaces are missing", true, append(reads, "get namespaces"),
			append(writes[:5:5], "create "+crds, "patch "+crds, "create namespaces"), backup.Fail},
	} {
		disaster(test.missing)
		there := *w
		if test.missing {
			there.ns, there.other = testkit.Unique(t)+"-new", testkit.Unique(t)+"-new"
		}
		start := func(rights []string) (*backup.Plan, *backup.Result, int, error) {
			counter := testkit.NewCounter()
			r := w.restore(counter.Wrap(testkit.User(t, "restorer", rules(rights)...)), path, test.replace)
			if test.missing {
				r.Namespaces = map[string]string{w.ns: there.ns, w.other: there.other}
			}
			plan, result, err := run(t.Context(), r)
			written := counter.Mutating(func(r testkit.Request) bool { return r.Resource != "selfsubjectaccessreviews" })
			return plan, result, written, err
		}
		without(test.writes, func(lacking string, left []string) {
			_, _, written, err := start(append(left, test.reads...))
			if err == nil || !strings.Contains(err.Error(), "rights are missing: "+lacking) || written > 0 {
				t.Errorf("%s: without %s: %d writes: %v", test.reason, lacking, written, err)
			}
		})
		without(reads, func(lacking string, left []string) {
			_, _, written, err := start(append(left, test.writes...))
			verb, resource, _ := strings.Cut(lacking, " ")
			name, _, _ := strings.Cut(resource, ".")
			said := err != nil && (strings.Contains(err.Error(), fmt.Sprintf("cannot %s resource %q", verb, name)) ||
				strings.Contains(err.Error(), "rights are missing: "+lacking))
			if !said || written > 0 {
				t.Errorf("%s: without %s: %d writes: %v", test.reason, lacking, written, err)
			}
		})
		plan, result, _, err := start(append(test.writes, test.reads...))
		if err != nil || len(result.Refused)+len(result.Changed) > 0 {
			t.Errorf("%s: %+v %+v: %v", test.reason, plan, result, err)
		}
		if after := strings.NewReplacer(there.ns, w.ns, there.other, w.other, `"observedGeneration":2`, `"observedGeneration":1`).Replace(there.contents()); after != before {
			t.Errorf("%s: before:\n%s\nafter:\n%s", test.reason, before, after)
		}
		there.deleteAll(false)
	}
}
