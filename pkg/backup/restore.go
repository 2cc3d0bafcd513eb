package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/backup/archive"
	"github.com/corollary-dev/corollary/pkg/backup/contents"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/ownership"
	"github.com/corollary-dev/corollary/pkg/crddiff"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// What to do about an object that exists and is not as in the backup.
const (
	Fail    = "fail"    // write nothing at all
	Skip    = "skip"    // leave it
	Replace = "replace" // update it
)

// Restore brings the objects of an archive back. It can be run again after an interruption: what is as in the backup is
// left alone, and what has this field manager is not finished.
type Restore struct {
	Client    dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	Archive   *archive.Archive
	// Operators are those of the cluster: objects are restored with their names, whatever they were when the backup was
	// taken.
	Operators []archive.Operator
	// NoPause leaves upstreams unpaused until the end: no operator is running.
	NoPause    bool
	OnConflict string
	// Namespaces has the target of each namespace whose objects go to another one.
	Namespaces map[string]string
	// FieldManager owns what is not finished, and nothing at the end: managedFields are restored.
	FieldManager string
	// Converter is the conversion of a kind, for managedFields of versions that the cluster does not have; nil if none is
	// known.
	Converter func(*apiextensionsv1.CustomResourceDefinition) *convert.Converter
	// DryRun has Run ask the API server for every write as a dry run.
	DryRun bool

	kinds   []*target
	renamed []contents.Rename
}

// target is a kind with what the API server knows of it.
type target struct {
	archive.Kind
	install  *unstructured.Unstructured
	versions []string             // of the definition, also those that are not served
	version  *kinds.Version       // for a dry run; nil for a built-in kind, and with install
	owners   *ownership.Ownership // once it is needed
}

// Plan is what a restore has to do.
type Plan struct {
	Definitions []string // that are created
	Namespaces  []string // that are created
	Kinds       []KindPlan
	// Differences are fields of objects that exist, of the first few objects.
	Differences []Problem
	Refused     []Problem
	Notes       []string
	// Rights are those that the user lacks for what is to be written.
	Rights RightsError

	// missing are the archived uids of the objects that are not in the cluster.
	missing map[types.UID]bool
	// archived are the Namespaces of the archive that are not in the cluster, and have no owner in themselves. What is in
	// one waits for it.
	archived map[string]types.UID
}

// KindPlan counts the objects of a kind.
type KindPlan struct {
	Name                                              string
	Created, Equal, Different, Unfinished, Unreadable int
	// Missing are the first of Created.
	Missing []string
}

// Problem is what is reported about one object.
type Problem struct{ Object, Text string }

func (p Problem) String() string { return p.Object + ": " + p.Text }

// Different counts the objects that exist and are not as in the backup.
func (p *Plan) Different() (n int) {
	for _, k := range p.Kinds {
		n += k.Different
	}
	return n
}

// Result is what a restore has done.
type Result struct {
	Created, Replaced, Finished int
	// Refused are objects that could not be restored, Changed those that the API server stored in another way than they
	// were sent.
	Refused, Changed []Problem
	Unknown          []Unknown // of a dry run
	// Guessed are objects with managedFields of a version that the cluster does not have, and that nothing converts.
	Guessed []string
}

// Plan compares the archive with the cluster. It writes nothing.
func (r *Restore) Plan(ctx context.Context) (*Plan, error) {
	plan := &Plan{missing: map[types.UID]bool{}}
	r.kinds, r.renamed = nil, r.renames()
	for _, k := range r.Archive.Manifest.Kinds {
		t, err := r.target(ctx, k, plan)
		if err != nil {
			return nil, err
		}
		r.kinds = append(r.kinds, t)
		plan.Kinds = append(plan.Kinds, KindPlan{Name: k.Name()})
	}
	p := r.newPass(plan, nil)
	if err := p.missingNamespaces(ctx); err != nil {
		return nil, err
	}
	if err := p.rounds(ctx); err != nil {
		return nil, err
	}
	plan.Notes = append(plan.Notes, p.finalizerNotes()...)
	err := rightsError(ctx, r.Client, r.rights(plan))
	if errors.As(err, &plan.Rights) {
		return plan, nil
	}
	return plan, err
}

// target holds a kind of the archive to what the API server serves.
func (r *Restore) target(ctx context.Context, k archive.Kind, plan *Plan) (*target, error) {
	t := &target{Kind: k}
	if k.Definition != "" {
		if err := r.definition(ctx, t, plan); err != nil || t.install != nil {
			return t, err
		}
	}
	list, err := r.Discovery.ServerResourcesForGroupVersion(k.APIVersion)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("asking the API server for the kinds of %s: %w", k.APIVersion, err)
	}
	found := false
	if list != nil {
		for _, resource := range list.APIResources {
			switch resource.Name {
			case k.Resource:
				found = true
				if resource.Namespaced != k.Namespaced {
					return nil, scopeError(&k)
				}
			case k.Resource + "/status":
				t.HasStatus = true
			}
		}
	}
	if !found && k.Definition == "" {
		return nil, fmt.Errorf("%s %s is not served by the API server: install it first", k.APIVersion, k.Kind)
	}
	return t, nil
}

func scopeError(k *archive.Kind) error {
	scope := map[bool]string{true: "namespaced", false: "cluster-scoped"}
	return fmt.Errorf("%s is %s in the backup and %s in the cluster: nothing can be restored into it; delete the kind "+
		"or restore elsewhere",
		k.Name(), scope[k.Namespaced], scope[!k.Namespaced])
}

// Definition holds a kind to its CustomResourceDefinition in the cluster, or notes that it has to be created.
func (r *Restore) definition(ctx context.Context, t *target, plan *Plan) error {
	archived, err := r.Archive.Definition(&t.Kind)
	if err != nil {
		return err
	}
	live, err := r.Client.Resource(definitions).Get(ctx, t.Name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		strip(archived, false)
		t.install, live = archived, archived
		plan.Definitions = append(plan.Definitions, t.Name())
	} else if err != nil {
		return fmt.Errorf("reading CustomResourceDefinition %s: %w", t.Name(), err)
	}
	scope, _, _ := unstructured.NestedString(live.Object, "spec", "scope")
	if (scope == "Namespaced") != t.Namespaced {
		return scopeError(&t.Kind)
	}
	versions, _, _ := unstructured.NestedSlice(live.Object, "spec", "versions")
	var names []string
	t.HasStatus = false
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if t.versions = append(t.versions, name); version["served"] == true {
			names = append(names, name)
		}
		if name == t.GVR().Version {
			_, t.HasStatus, _ = unstructured.NestedMap(version, "subresources", "status")
		}
	}
	if version := t.GVR().Version; !slices.Contains(names, version) {
		return fmt.Errorf("the objects of %s are of version %s, and the CustomResourceDefinition in the cluster serves %s: "+
			"set served: true in %s with a conversion while you restore, or convert the objects and apply them", t.Name(),
			version,
			strings.Join(names, ", "), version)
	}
	if t.install == nil {
		if err := keepsFields(live, t.GVR().Version); err != nil {
			return err
		}
		if t.version, err = readVersion(live, t.GVR().Version); err != nil {
			return err
		}
	}
	if t.install == nil && len(contents.Differences(archived.Object["spec"], live.Object["spec"],
		contents.InBackup, false, false)) > 0 {
		plan.Notes = append(plan.Notes, "CustomResourceDefinition "+t.Name()+" is not as in the backup, and is left as it is")
	}
	return nil
}

func (r *Restore) namespace(name string) string {
	if to, ok := r.Namespaces[name]; ok {
		return to
	}
	return name
}

// ErrConflict ends a restore that would have to change objects.
var ErrConflict = errors.New(
	"objects exist and are not as in the backup: choose --on-conflict skip or --on-conflict replace")

// Check returns why Run would write nothing.
func (r *Restore) Check(plan *Plan) error {
	switch {
	case r.OnConflict == Fail && plan.Different() > 0:
		return ErrConflict
	case len(plan.Rights) > 0:
		return plan.Rights
	}
	return nil
}

// Run does what the plan says, or as a dry run asks the API server whether it would. It goes on past objects that are
// refused.
func (r *Restore) Run(ctx context.Context, plan *Plan) (*Result, error) {
	result := &Result{}
	if err := r.Check(plan); err != nil {
		return result, err
	}
	for _, t := range r.kinds {
		if err := r.install(ctx, t); err != nil {
			return result, err
		}
	}
	for _, name := range plan.Namespaces {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": name}}}
		_, err := r.Client.Resource(namespaces).Create(ctx, u,
			metav1.CreateOptions{FieldManager: r.FieldManager, DryRun: r.dryRun()})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return result, fmt.Errorf("creating Namespace %s: %w", name, err)
		}
	}
	p := r.newPass(&Plan{Kinds: slices.Clone(plan.Kinds), Namespaces: plan.Namespaces, missing: plan.missing,
		archived: plan.archived}, result)
	if err := p.rounds(ctx); err != nil {
		return result, err
	}
	return result, p.finish(ctx)
}

func typed(u *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", u.GetName(), err)
	}
	return crd, nil
}

// keepsFields returns an error where the API server would drop fields of a version: it stores another one, and nothing
// converts.
func keepsFields(u *unstructured.Unstructured, version string) error {
	crd, err := typed(u)
	if err != nil {
		return err
	}
	if c := crd.Spec.Conversion; c != nil && c.Strategy != apiextensionsv1.NoneConverter {
		return nil
	}
	for _, stored := range crd.Spec.Versions {
		if !stored.Storage || stored.Name == version {
			continue
		}
		dropped, err := crddiff.Dropped(crd, version, stored.Name)
		if err != nil {
			return fmt.Errorf("comparing the versions of CustomResourceDefinition %s: %w", crd.Name, err)
		}
		var paths []string
		for _, change := range dropped {
			paths = append(paths, change.Path)
		}
		if len(paths) > 0 {
			return fmt.Errorf("CustomResourceDefinition %s stores version %s without a conversion, "+
				"which drops what objects of version %s have: %s: set storage: true in %s, or serve a conversion, while you "+
				"restore",
				crd.Name, stored.Name, version, strings.Join(paths, ", "), version)
		}
	}
	return nil
}

// install creates a CustomResourceDefinition and waits until its objects can be listed.
func (r *Restore) install(ctx context.Context, t *target) error {
	if t.install == nil {
		return nil
	}
	_, err := r.Client.Resource(definitions).Create(ctx, t.install,
		metav1.CreateOptions{FieldManager: r.FieldManager, DryRun: r.dryRun()})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating CustomResourceDefinition %s: %w", t.Name(), err)
	}
	if r.DryRun {
		return nil
	}
	const patience = 2 * time.Minute
	var last error // such as that a conversion webhook cannot be reached yet
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if _, last = r.Client.Resource(t.GVR()).List(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsForbidden(last) {
			return false, last
		}
		if last == nil {
			established, _ := r.established(ctx, t)
			return established, nil
		}
		return false, nil
	})
	if err != nil {
		_, why := r.established(ctx, t)
		return fmt.Errorf("waiting until CustomResourceDefinition %s is established%s: %w", t.Name(), why, cmp.Or(last, err))
	}
	// Whoever applies the definition next owns its fields.
	const disown = `[{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]`
	_, err = r.Client.Resource(definitions).
		Patch(ctx, t.Name(), types.JSONPatchType, []byte(disown), metav1.PatchOptions{FieldManager: r.FieldManager})
	if err != nil {
		return fmt.Errorf("giving up the fields of CustomResourceDefinition %s: %w", t.Name(), err)
	}
	return nil
}

// established reports whether the API server serves a definition; else why says which condition is False.
func (r *Restore) established(ctx context.Context, t *target) (_ bool, why string) {
	u, err := r.Client.Resource(definitions).Get(ctx, t.Name(), metav1.GetOptions{})
	if err != nil {
		return false, ""
	}
	return kinds.Established(u)
}

// pauseKeys are the annotations by which an upstream is paused; none for other kinds.
func (r *Restore) pauseKeys(t *target) (keys []string) {
	for _, o := range r.Operators {
		if o.Upstream == t.Name() && o.Pause != "" && !r.NoPause && !slices.Contains(keys, o.Pause) {
			keys = append(keys, o.Pause)
		}
	}
	return keys
}

// strip removes what the API server sets, and the status where it has a subresource.
func strip(u *unstructured.Unstructured, hasStatus bool) {
	for _, field := range []string{"resourceVersion", "uid", "generation", "creationTimestamp",
		"managedFields", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	if hasStatus {
		delete(u.Object, "status")
	}
}

// unfinished reports whether a restore was interrupted before it had finished the object.
func (r *Restore) unfinished(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == r.FieldManager
	})
}

type uids = map[types.UID]types.UID

// renames pairs the operators of the backup with those that are given: by name, or as the only one that watches a kind.
func (r *Restore) renames() (list []contents.Rename) {
	archived := r.Archive.Manifest.Operators
	for _, to := range r.Operators {
		watches := func(o archive.Operator) bool { return o.Upstream == to.Upstream }
		i := slices.IndexFunc(archived, func(o archive.Operator) bool { return watches(o) && o.Name == to.Name })
		if i < 0 && only(archived, watches) && only(r.Operators, watches) {
			i = slices.IndexFunc(archived, watches)
		}
		if i >= 0 {
			list = append(list, contents.Rename{From: archived[i], To: to})
		}
	}
	return list
}

func only[T any](list []T, meets func(T) bool) bool {
	i := slices.IndexFunc(list, meets)
	return i >= 0 && !slices.ContainsFunc(list[i+1:], meets)
}

// rights are those that the writes of a plan need.
func (r *Restore) rights(plan *Plan) (list []right) {
	if len(plan.Definitions) > 0 {
		list = append(list, right{verb: "create", resource: definitions}, right{verb: "patch", resource: definitions})
	}
	if len(plan.Namespaces) > 0 {
		list = append(list, right{verb: "create", resource: namespaces})
	}
	for i, t := range r.kinds {
		k := plan.Kinds[i]
		if t.install != nil {
			list = append(list, right{verb: "list", resource: t.GVR()})
		}
		replaced := r.OnConflict == Replace && k.Different > 0
		for _, f := range r.Archive.Manifest.Files {
			if f.Kind != t.Name() || !r.Archive.Readable(&f) {
				continue
			}
			need := right{resource: t.GVR(), namespace: r.namespace(f.Namespace)}
			for _, row := range []struct {
				verb, subresource string
				needed            bool
			}{
				{"create", "", k.Created > 0},
				{"update", "", replaced},
				{"patch", "", k.Created > 0 || k.Unfinished > 0 || replaced},
				{"patch", "status", t.HasStatus && (k.Created > 0 || k.Unfinished > 0 || replaced)},
			} {
				if row.needed {
					need.verb, need.subresource = row.verb, row.subresource
					list = append(list, need)
				}
			}
		}
	}
	return list
}
