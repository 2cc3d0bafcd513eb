package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
	"github.com/corollary-dev/corollary/pkg/backup/contents"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// shown is how many objects a plan names: of each kind as missing, and of all as different.
const shown = 10

// pass goes through the objects of an archive. It holds a few bytes for each object, and one page of the cluster's.
type pass struct {
	*Restore
	plan   *Plan
	result *Result // nil: nothing is written
	// now has the uid in the cluster of each uid in the archive.
	now uids
	// unfinished has the generation of the objects whose status and managedFields are to be restored, by archived uid.
	unfinished map[types.UID]int64
	// older are the archived uids of objects that exist with a status, which is later than the archived one.
	older map[types.UID]bool
	// others are the archived uids of objects that an object of another owner, or of none, has replaced: no status records
	// that one.
	others map[types.UID]bool
	// refused are the archived uids of objects that were given up; waiting counts those that wait for an owner or a
	// Namespace.
	refused  map[types.UID]bool
	waiting  int
	progress bool
	last     bool                 // what waits now is refused
	lookups  map[string]types.UID // of owners that are not in the archive
	// unknownFinalizers counts objects by kind and finalizer.
	unknownFinalizers map[[2]string]int
}

func (r *Restore) newPass(plan *Plan, result *Result) *pass {
	return &pass{Restore: r, plan: plan, result: result, now: uids{}, unfinished: map[types.UID]int64{},
		older: map[types.UID]bool{}, others: map[types.UID]bool{}, refused: map[types.UID]bool{},
		lookups: map[string]types.UID{}, unknownFinalizers: map[[2]string]int{}}
}

// rounds goes through all files until no object waits for its owner or Namespace any more, or none of them can be
// helped.
func (p *pass) rounds(ctx context.Context) error {
	for {
		p.waiting, p.progress = 0, false
		for i, t := range p.kinds {
			for _, f := range p.files(t) {
				if err := p.file(ctx, t, &p.plan.Kinds[i], f); err != nil {
					return err
				}
			}
		}
		if p.waiting == 0 {
			return nil
		}
		p.last = !p.progress
	}
}

func (p *pass) files(t *target) (list []*archive.File) {
	files := p.Archive.Manifest.Files
	for i := range files {
		if files[i].Kind == t.Name() {
			list = append(list, &files[i])
		}
	}
	return list
}

func (p *pass) file(ctx context.Context, t *target, k *KindPlan, f *archive.File) error {
	if !p.Archive.Readable(f) {
		k.Unreadable = 0
		for _, f := range p.files(t) {
			k.Unreadable += f.Objects
		}
		return nil
	}
	live := &cursor{client: p.objects(t, f.Namespace), skip: (p.result == nil || p.DryRun) && t.install != nil}
	return p.each(t, f, func(u *unstructured.Unstructured) error {
		if _, done := p.now[u.GetUID()]; done || p.refused[u.GetUID()] {
			return nil
		}
		if p.waitsForNamespace(t, u) {
			p.waiting++
			return nil
		}
		existing, err := live.find(ctx, u.GetName())
		if err != nil {
			return fmt.Errorf("listing %s: %w", t.Name(), err)
		}
		err = p.object(ctx, t, k, u, existing)
		var missing *ownerError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &missing) && !p.last:
			p.waiting++
			return nil
		case err != nil:
			p.refuse(t, u, err)
		default:
			p.progress = true
		}
		return nil
	})
}

func (p *pass) objects(t *target, namespace string) dynamic.ResourceInterface {
	if !t.Namespaced {
		return p.Client.Resource(t.GVR())
	}
	return p.Client.Resource(t.GVR()).Namespace(p.namespace(namespace))
}

func (p *pass) refuse(t *target, u *unstructured.Unstructured, err error) {
	p.refused[u.GetUID()], p.progress = true, true // what waits for it may go on
	problem := Problem{p.describe(t, u), err.Error()}
	if p.result != nil {
		p.result.Refused = append(p.result.Refused, problem)
	} else {
		p.plan.Refused = append(p.plan.Refused, problem)
	}
	// what is in it is restored nevertheless
	if t.GVR() == namespaces && p.result == nil && p.plan.archived[u.GetName()] != "" {
		delete(p.plan.archived, u.GetName())
		p.plan.createNamespace(u.GetName())
	}
}

func (p *pass) describe(t *target, u *unstructured.Unstructured) string {
	if !t.Namespaced {
		return t.Name() + " " + u.GetName()
	}
	return t.Name() + " " + p.namespace(u.GetNamespace()) + "/" + u.GetName()
}

// object restores one object but for its status and managedFields, or counts it in the plan.
func (p *pass) object(ctx context.Context, t *target, k *KindPlan, u, existing *unstructured.Unstructured) error {
	want, _, err := p.prepare(ctx, t, u)
	if err != nil {
		return err
	}
	if existing == nil && p.result == nil {
		if k.Created++; len(k.Missing) < shown {
			k.Missing = append(k.Missing, p.describe(t, u))
		}
		p.plan.missing[u.GetUID()] = true
		p.noteFinalizers(t, want)
		p.now[u.GetUID()] = u.GetUID()
		return nil
	}
	if existing == nil {
		err := p.create(ctx, t, u, want)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if existing, err = p.objects(t, u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{}); err != nil {
			return err
		}
	}
	return p.conflict(ctx, t, k, u, want, existing)
}

func (p *pass) create(ctx context.Context, t *target, u, want *unstructured.Unstructured) error {
	if why := p.missingFor(t, want.GetNamespace()); why != "" {
		p.unknown(t, u, why)
		return nil
	}
	sent := p.withPause(t, want)
	stored, err := p.objects(t, u.GetNamespace()).Create(ctx, sent,
		metav1.CreateOptions{FieldManager: p.FieldManager, DryRun: p.dryRun()})
	if p.DryRun && apply.DryRunUnsupported(err) {
		p.unknown(t, u, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	p.result.Created++
	made := stored.DeepCopy()
	p.wrote(t, u, sent, stored)
	if p.DryRun {
		delete(p.unfinished, u.GetUID()) // there is no object whose status could be written
		if err := p.checkStatus(ctx, t, u, made); err != nil {
			return err
		}
		p.result.Finished++
	}
	return nil
}

// expected is how an object is expected to be that exists as live: paused, if a restore that was interrupted has made
// it so.
func (p *pass) expected(t *target, live, want *unstructured.Unstructured, unfinished bool) *unstructured.Unstructured {
	if !unfinished {
		return want
	}
	p.hold(live) // it may have been released already
	p.pauseAgain(t, live, want)
	return p.withPause(t, want)
}

// conflict decides about an object that exists.
func (p *pass) conflict(
	ctx context.Context, t *target, k *KindPlan, u, want, existing *unstructured.Unstructured,
) error {
	live := existing.DeepCopy()
	strip(live, t.HasStatus)
	contents.Without(live, contents.Generated(u))
	unfinished := p.Restore.unfinished(existing)
	different := t.differences(p.expected(t, live, want, unfinished).Object, live.Object, contents.InBackup)
	if len(different) > 0 {
		if !unfinished {
			p.others[u.GetUID()] = p.isOthers(u, want, existing)
		}
		if err := p.mayReplace(ctx, t, u, want, existing); err != nil {
			return err
		}
	}
	p.noteOlder(u, existing, unfinished)
	switch {
	case len(different) == 0 && !unfinished:
		k.Equal++
	case len(different) == 0:
		k.Unfinished++
		p.unfinished[u.GetUID()] = existing.GetGeneration()
	case p.result == nil:
		if k.Different++; unfinished {
			different = append(different, "a restore that was interrupted has not finished it")
		}
		if len(p.plan.Differences) < shown {
			p.plan.Differences = append(p.plan.Differences, Problem{p.describe(t, u), strings.Join(different, "; ")})
		}
	case p.OnConflict == Replace:
		return p.replace(ctx, t, u, want, existing)
	case p.plan.missing[u.GetUID()] && !unfinished:
		return fmt.Errorf("it was created while it was being restored, and is not as in the backup: %s: if an operator "+
			"created it, name its "+
			"current config with -c, by which its upstreams are paused, and add --on-conflict replace",
			strings.Join(different, "; "))
	case p.OnConflict == Fail:
		return fmt.Errorf("it exists by now and is not as in the backup: %s", strings.Join(different, "; "))
	case unfinished: // what someone has changed since stays, but not that it is paused
		p.unfinished[u.GetUID()] = existing.GetGeneration()
	}
	p.now[u.GetUID()] = existing.GetUID()
	return nil
}

// mayReplace returns an error if an object must not be replaced, though the flags ask for that.
func (p *pass) mayReplace(ctx context.Context, t *target, u, want, existing *unstructured.Unstructured) error {
	if p.OnConflict != Replace {
		return nil
	}
	if err := p.checkTaken(ctx, u, want, existing); err != nil {
		return err
	}
	p.noteFinalizers(t, want)
	return nil
}

func (p *pass) replace(ctx context.Context, t *target, u, want, existing *unstructured.Unstructured) error {
	sent := p.withPause(t, want)
	contents.Carry(sent, existing, contents.Generated(u))
	sent.SetUID(existing.GetUID())
	sent.SetResourceVersion(existing.GetResourceVersion())
	replaced, err := p.objects(t, u.GetNamespace()).
		Update(ctx, sent, metav1.UpdateOptions{FieldManager: p.FieldManager, DryRun: p.dryRun()})
	if p.DryRun && apply.DryRunUnsupported(err) {
		p.unknown(t, u, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	p.result.Replaced++
	strip(sent, false)
	contents.Without(sent, contents.Generated(u))
	p.wrote(t, u, sent, replaced)
	return nil
}

func (t *target) differences(want, live any, words func(want, live contents.Value) string) []string {
	return contents.Differences(want, live, words, !kinds.IsBuiltin(t.GVK().GroupKind()),
		archive.IsSecret(t.GVR().GroupResource()))
}

// wrote notes an object that was written, and what of it the API server changed.
func (p *pass) wrote(t *target, u, sent, stored *unstructured.Unstructured) {
	p.now[u.GetUID()], p.unfinished[u.GetUID()] = stored.GetUID(), stored.GetGeneration()
	delete(p.others, u.GetUID())
	strip(stored, t.HasStatus)
	contents.Without(stored, contents.Generated(u))
	p.compare(t, u, sent.Object, stored.Object)
}

func (p *pass) compare(t *target, u *unstructured.Unstructured, sent, stored any) {
	if different := t.differences(sent, stored, contents.OnceSent); len(different) > 0 {
		p.result.Changed = append(p.result.Changed, Problem{p.describe(t, u), strings.Join(different, "; ")})
	}
}

// ownerError means that an owner does not exist (yet).
type ownerError struct{ owner contents.Owner }

func (e *ownerError) Error() string {
	return fmt.Sprintf("its owner %s is neither restored nor in the cluster, so the garbage collector would delete the "+
		"object: "+
		"restore or create the owner first", &e.owner)
}

// prepare returns an object as it is to be created, and the pairs of its owners' old and new uids.
func (p *pass) prepare(
	ctx context.Context, t *target, u *unstructured.Unstructured,
) (*unstructured.Unstructured, []string, error) {
	want := u.DeepCopy()
	strip(want, t.HasStatus)
	contents.Without(want, contents.Generated(u))
	if t.Namespaced {
		want.SetNamespace(p.namespace(u.GetNamespace()))
	}
	var pairs []string
	for _, o := range contents.Owners(u, p.everyOperator()) {
		uid, err := p.owner(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		if want.GetNamespace() != u.GetNamespace() && !p.isMoved(o) {
			return nil, nil, fmt.Errorf(
				"it is to be restored into namespace %s, and its owner %s is not: the operator of that owner does not "+
					"want it there, and may delete it. Do not map its namespace, or map that of the owner, too",
				want.GetNamespace(), &o)
		}
		pairs = append(pairs, string(o.UID), string(uid))
		contents.SetOwner(want, o, uid, p.namespace(o.Namespace))
	}
	return want, pairs, nil
}

// isMoved reports whether an owner is restored into another namespace.
func (p *pass) isMoved(o contents.Owner) bool {
	_, namespaced, err := p.ownerResource(o)
	return err == nil && namespaced && p.namespace(o.Namespace) != o.Namespace
}

// owner returns the uid of an owner: one that is in the archive, or one in the cluster.
func (p *pass) owner(ctx context.Context, o contents.Owner) (types.UID, error) {
	if uid, ok := p.now[o.UID]; ok {
		return uid, nil
	}
	gvr, namespaced, err := p.ownerResource(o)
	if err != nil {
		return "", err
	}
	o.Namespace = p.namespace(o.Namespace)
	if !namespaced {
		o.Namespace = ""
	}
	if uid, ok := p.lookups[o.String()]; ok {
		return uid, nil
	}
	live, err := p.Client.Resource(gvr).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", &ownerError{o}
	}
	if err != nil {
		return "", fmt.Errorf("looking up its owner %s: %w", &o, err)
	}
	p.lookups[o.String()] = live.GetUID()
	return live.GetUID(), nil
}

func (p *pass) ownerResource(o contents.Owner) (schema.GroupVersionResource, bool, error) {
	for _, t := range p.kinds {
		if o.Annotation != "" && t.Name() == o.Resource || o.Annotation == "" && t.GVK().GroupKind() == o.GVK.GroupKind() {
			return t.GVR(), t.Namespaced, nil
		}
	}
	if o.Annotation == "" {
		list, err := p.Discovery.ServerResourcesForGroupVersion(o.GVK.GroupVersion().String())
		if err != nil && !apierrors.IsNotFound(err) {
			return schema.GroupVersionResource{}, false, err
		}
		if err == nil {
			for _, r := range list.APIResources {
				if r.Kind == o.GVK.Kind && !strings.Contains(r.Name, "/") {
					return o.GVK.GroupVersion().WithResource(r.Name), r.Namespaced, nil
				}
			}
		}
	}
	return schema.GroupVersionResource{}, false, &ownerError{o}
}

// withPause adds the annotations by which operators leave an upstream alone, and keeps Jobs and Pods from being run.
func (p *pass) withPause(t *target, u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	p.hold(u)
	keys := p.pauseKeys(t)
	if len(keys) == 0 {
		return u
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range keys {
		annotations[key] = paused
	}
	u.SetAnnotations(annotations)
	return u
}

// paused is the value of an annotation that pauses an upstream.
const paused = "true"

// pauseAgain sets such an annotation of an unfinished object where it has the value of the backup already.
func (p *pass) pauseAgain(t *target, live, want *unstructured.Unstructured) {
	annotations := live.GetAnnotations()
	for _, key := range p.pauseKeys(t) {
		value, ok := annotations[key]
		if archived, had := want.GetAnnotations()[key]; ok && had && value == archived {
			annotations[key] = paused
		}
	}
	live.SetAnnotations(annotations)
}

// each visits the objects of a file as they are to be restored: with the names that the configs use now.
func (p *pass) each(t *target, f *archive.File, visit func(*unstructured.Unstructured) error) error {
	return p.Archive.Each(f, func(u *unstructured.Unstructured) error {
		for _, r := range p.renamed {
			r.Object(t.Name(), u)
		}
		return visit(u)
	})
}
