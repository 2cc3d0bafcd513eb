package generate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Identity is a ServiceAccount, to which rights are granted.
type Identity struct{ Namespace, Name string }

// String returns namespace/name.
func (i Identity) String() string { return i.Namespace + "/" + i.Name }

// RBACOptions are what rights depend on besides the configs.
type RBACOptions struct {
	// Kinds knows the resource and the scope of kinds. Both are guessed for a kind that it does not know.
	Kinds kinds.Source
	// Process is the account that the process runs as. Its Lease is in the same namespace, and so are events about
	// operators.
	Process Identity
	// Lease is the name of the Lease that leader election uses; empty without leader election.
	Lease string
	// Shards is whether the processes share shards: their Leases have names that are not known before.
	Shards bool
	// Conversions are those that the process serves, with the certificate in the Secret of that name, in the process's
	// namespace.
	Conversions []*load.ConversionFile
	Secret      string
	// SecretReadOnly: another writer keeps the Secret.
	SecretReadOnly bool
}

// RBAC is the rights that configs need.
type RBAC struct {
	// Process is the account that the process runs as.
	Process Identity
	// Grants are in the order in which they are best read: what the process needs for itself, then operator by operator in
	// the order of the configs, the cluster before its namespaces. There is one for each identity, operator and place.
	Grants []Grant
	// Notes are what a person should know of them, a sentence each: what was guessed, and what configs do not say.
	Notes []string
}

// Grant is what one identity may do in one place.
type Grant struct {
	To Identity
	// Operator is the operator that needs it; empty for what the process needs for itself.
	Operator string
	// Namespace is where; empty for the whole cluster.
	Namespace string
	// Rules are in the order in which the config asks for them: one for each resource and set of names.
	Rules []Rule
}

// Rule is about one resource.
type Rule struct {
	// Group and Resource are as RBAC writes them: apps and deployments/status. The core group is empty.
	Group, Resource string
	// Names are those of the objects to which it is limited; all where empty.
	Names []string
	// Verbs are sorted as people know them: reading before writing.
	Verbs []string
	// For says what in the config needs the right, in words for a comment.
	For []string
}

// Rights derives from configs what has to be granted so that `corollary run` can carry them out, and nothing more. Each
// operator's rights go to the ServiceAccount that its config names, else to the process's own.
//
// They are for the configs as they are now: to clean up what an earlier config made, in a namespace or of a kind that
// is no longer named, takes the earlier rights. The error is about a kind that o.Kinds failed to look up.
func Rights(files []*load.File, o RBACOptions) (*RBAC, error) {
	d := &derivation{RBACOptions: o}
	if o.Lease != "" {
		d.election()
	}
	if err := d.conversions(); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := d.operator(&f.Operator); err != nil {
			return nil, fmt.Errorf("deriving the rights of operator %s: %w", f.Metadata.Name, err)
		}
	}
	return d.result(), nil
}

// ReleaseRights derives what `corollary release` needs for configs: to list upstreams that may have a finalizer, and
// the objects of deletion.before, which have it too, and to patch it off. All rights go to o.Process; those to the
// Lease are not among them. The chart's tests compare the rights of its hook with these.
func ReleaseRights(files []*load.File, o RBACOptions) (*RBAC, error) {
	d := &derivation{RBACOptions: o}
	for _, f := range files {
		if err := d.release(&f.Operator); err != nil {
			return nil, fmt.Errorf("deriving the rights to release operator %s: %w", f.Metadata.Name, err)
		}
	}
	return d.result(), nil
}

// derivation gathers grants.
type derivation struct {
	RBACOptions
	grants []*Grant
	notes  []string
}

// allow adds verbs on a resource, at each place, to what an identity may do.
func (d *derivation) allow(to Identity, operator string, places []string, what target, verbs ...string) {
	for _, place := range places {
		g := d.grant(to, operator, place)
		i := slices.IndexFunc(g.Rules, func(r Rule) bool {
			return r.Group == what.Group && r.Resource == what.Resource && slices.Equal(r.Names, what.names)
		})
		if i < 0 {
			i = len(g.Rules)
			g.Rules = append(g.Rules, Rule{Group: what.Group, Resource: what.Resource, Names: what.names})
		}
		r := &g.Rules[i]
		r.Verbs = union(r.Verbs, verbs)
		if !slices.Contains(r.For, what.why) {
			r.For = append(r.For, what.why)
		}
	}
}

func (d *derivation) grant(to Identity, operator, place string) *Grant {
	i := slices.IndexFunc(d.grants, func(g *Grant) bool {
		return g.To == to && g.Operator == operator && g.Namespace == place
	})
	if i < 0 {
		i = len(d.grants)
		d.grants = append(d.grants, &Grant{To: to, Operator: operator, Namespace: place})
	}
	return d.grants[i]
}

// target is what rights are about.
type target struct {
	schema.GroupResource
	names []string
	why   string
}

func of(gr schema.GroupResource, why string, names ...string) target {
	return target{GroupResource: gr, names: names, why: why}
}

// verbOrder is the order in which verbs are written.
var verbOrder = []string{"impersonate", "get", "list", "watch", "create", "update", "patch", "delete"}

func union(verbs, more []string) []string {
	all := slices.Concat(verbs, more)
	slices.SortFunc(all, func(a, b string) int { return slices.Index(verbOrder, a) - slices.Index(verbOrder, b) })
	return slices.Compact(all)
}

// result sorts the grants.
func (d *derivation) result() *RBAC {
	var operators []string
	for _, g := range d.grants {
		if g.Operator != "" && !slices.Contains(operators, g.Operator) {
			operators = append(operators, g.Operator)
		}
	}
	slices.SortStableFunc(d.grants, func(a, b *Grant) int {
		// the process's own has no place among them: -1
		return cmp.Or(slices.Index(operators, a.Operator)-slices.Index(operators, b.Operator),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	r := &RBAC{Process: d.Process, Notes: d.notes}
	for _, g := range d.grants {
		r.Grants = append(r.Grants, *g)
	}
	return r
}

// kind finds the resource and the scope of a kind, and guesses those of one that nothing is known of as Kubernetes' own
// tools do: the plural is regular, and it is namespaced and has a status.
func (d *derivation) kind(apiVersion, name string) (*kinds.Kind, error) {
	k, note, err := findKind(d.Kinds, schema.FromAPIVersionAndKind(apiVersion, name))
	d.note(note)
	return k, err
}

// findKind is kind; note is the sentence about a guess, else empty.
func findKind(source kinds.Source, gvk schema.GroupVersionKind) (k *kinds.Kind, note string, err error) {
	if k, err = source.Kind(gvk); errors.Is(err, kinds.ErrUnknown) {
		k, note = guessed(gvk)
		return k, note, nil
	}
	return k, "", err
}

// Converted is the resource that a conversion is for, whose name is that of its CustomResourceDefinition. note says
// what was guessed.
func Converted(source kinds.Source, c *load.ConversionFile) (gr schema.GroupResource, note string, err error) {
	k, note, err := findKind(source, c.For.WithVersion(c.Hub))
	if err != nil {
		return schema.GroupResource{}, "", err
	}
	return k.GVR.GroupResource(), note, nil
}

// guessed is what a kind is taken for of which nothing is known, and the sentence that says so.
func guessed(gvk schema.GroupVersionKind) (k *kinds.Kind, note string) {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return &kinds.Kind{GVK: gvk, GVR: plural, Namespaced: true, HasStatus: true},
		fmt.Sprintf("%s in %s is unknown: it is assumed to be the namespaced resource %s; give its "+
			"CustomResourceDefinition with --crds",
			gvk.Kind, gvk.GroupVersion(), plural.Resource)
}

func (d *derivation) note(text string) {
	if text != "" && !slices.Contains(d.notes, text) {
		d.notes = append(d.notes, text)
	}
}

// resourceOf is the resource of a kind, or a subresource of it.
func resourceOf(k *kinds.Kind, sub ...string) schema.GroupResource {
	return schema.GroupResource{Group: k.GVR.Group, Resource: strings.Join(append([]string{k.GVR.Resource}, sub...), "/")}
}
