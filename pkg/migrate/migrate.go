package migrate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/ownership"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pages"
)

const (
	// pageSize is how many objects are listed at once.
	pageSize = 500
	// lookInterval is how often a running migration looks whether its definition has changed.
	lookInterval = time.Second
	// tries is how often an object is written that others write too.
	tries = 10
	// maxFailures is for how many objects in a row the API server may fail before a migration stops.
	maxFailures = 10
	// refusalsKept is how many refused objects a result names.
	refusalsKept = 100
)

// DefaultRate is how many objects are rewritten each second.
const DefaultRate = 100

// Migration rewrites the objects of one kind.
type Migration struct {
	Client dynamic.Interface
	// CRD is the name of the CustomResourceDefinition.
	CRD string
	// FieldManager makes the requests; it comes to own nothing but what is filled in.
	FieldManager string
	// Leaving are versions that are about to be removed: managedFields must not name them any more. Versions that are not
	// served count among them.
	Leaving []string
	// Converter converts the managedFields of versions that leave; nil if none is known. It is not needed where no webhook
	// converts.
	Converter *convert.Converter
	// Fill are PATH=EXPRESSION, each a field of the stored version that objects without it get, and a CEL expression over
	// self. The fields belong to FieldManager then.
	Fill []string
	// Rate is how many objects are rewritten each second at most; 0: as many as the API server takes.
	Rate float32
	// OnlyNeeded leaves out objects of which neither the stored version nor the managers are to be changed.
	OnlyNeeded bool
	// Settle is how long it takes at most until every API server stores what a changed definition says; see SettleTime.
	// Run waits until the last change is that old: what another API server stores in the old version afterwards would not
	// be rewritten.
	Settle time.Duration
	// Leads reports whether the process may write still; nil: always.
	Leads func() bool
	// Progress is called after each object; nil for nobody.
	Progress func(Progress)
}

// Plan is what a migration has to do.
type Plan struct {
	// Stored is the version in which objects are stored now.
	Stored string
	// Before are the versions in which objects may be stored still, without Stored.
	Before []string
	// Objects is how many there are, as the API server estimates it.
	Objects int64
	// Lacking is how many objects lack a field that is to be filled in.
	Lacking int

	// changed is when the definition was changed last; zero if nobody knows.
	changed  time.Time
	fills    []fill
	version  *kinds.Version
	owners   *ownership.Ownership
	id       identity
	resource schema.GroupVersionResource
	leaving  []string
	kept     []string // the other versions of the definition
}

// identity identifies a state of a definition: it differs after someone changed or recreated it.
type identity struct {
	uid        types.UID
	generation int64
}

func identityOf(crd *apiextensionsv1.CustomResourceDefinition) identity {
	return identity{crd.UID, crd.Generation}
}

// Progress is how far a migration is.
type Progress struct {
	Done, Rewritten, Refused int
	// Fixed objects have other managedFields, Filled ones another field. Guessed are those of Fixed whose managedFields
	// nothing converts.
	Fixed, Filled, Guessed int
	// Left is how many are left by the API server's estimate.
	Left int64
}

// Refusal is an object that could not be rewritten.
type Refusal struct {
	Object types.NamespacedName
	Err    error
}

// Result is what a migration has done.
type Result struct {
	Progress
	// Refusals are the first of Refused.
	Refusals []Refusal
	// Trimmed reports whether status.storedVersions names the stored version alone now.
	Trimmed bool

	failures int // objects in a row for which the API server failed
}

// ErrChanged ends a migration: the definition is another one than the one that it began with.
var ErrChanged = errors.New("the CustomResourceDefinition was changed during the migration: run it again")

// FailingError ends a migration: the API server fails whatever the object, as it does while etcd is full.
type FailingError struct{ Last error }

func (e *FailingError) Error() string {
	return fmt.Sprintf("the migration stopped: the API server failed for %d objects in a row, and "+
		"status.storedVersions is unchanged: "+
		"fix the cause and migrate again: %v", maxFailures, e.Last)
}

func (e *FailingError) Unwrap() error { return e.Last }

// ErrNotLeading ends a migration: the process may not write any more.
var ErrNotLeading = errors.New("another process leads now, and migrates")

// Plan reads what there is to do. It writes nothing.
func (m *Migration) Plan(ctx context.Context) (*Plan, error) {
	crd, err := kinds.ReadDefinition(ctx, m.Client, m.CRD)
	if err != nil {
		return nil, err
	}
	p := &Plan{id: identityOf(crd), changed: changed(crd), leaving: slices.Clone(m.Leaving)}
	p.sort(crd.Spec.Versions)
	for _, leaving := range m.Leaving {
		if leaving == p.Stored {
			return nil, fmt.Errorf(
				"version %s cannot leave: objects are stored in it; set storage: true in another version of %s first",
				leaving,
				m.CRD,
			)
		}
	}
	served := slices.ContainsFunc(
		crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == p.Stored && v.Served },
	)
	if !served {
		return nil, fmt.Errorf("version %s, in which objects are stored, is not served: serve it", p.Stored)
	}
	for _, v := range crd.Status.StoredVersions {
		if v != p.Stored {
			p.Before = append(p.Before, v)
		}
	}
	p.resource = schema.GroupVersionResource{Group: crd.Spec.Group, Version: p.Stored, Resource: crd.Spec.Names.Plural}
	page, err := m.Client.Resource(p.resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", p.resource.GroupResource(), err)
	}
	p.Objects = int64(len(page.Items))
	if left := page.GetRemainingItemCount(); left != nil {
		p.Objects += *left
	}
	versions, err := kinds.Versions(crd)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", m.CRD, err)
	}
	p.version = versions[slices.IndexFunc(versions, func(v *kinds.Version) bool { return v.Name == p.Stored })]
	if p.fills, err = fills(m.Fill, p.version); err != nil {
		return nil, err
	}
	if p.owners, err = m.ownership(crd, versions, p.version); err != nil {
		return nil, err
	}
	return p, m.survey(ctx, p)
}

// sort separates the versions that leave from those that are kept.
func (p *Plan) sort(versions []apiextensionsv1.CustomResourceDefinitionVersion) {
	for _, v := range versions {
		if v.Storage {
			p.Stored = v.Name
		}
		if !v.Served && !slices.Contains(p.leaving, v.Name) {
			p.leaving = append(p.leaving, v.Name)
		}
		if !slices.Contains(p.leaving, v.Name) {
			p.kept = append(p.kept, v.Name)
		}
	}
}

// Run rewrites every object, continues past those that are refused, and names the stored version alone in
// status.storedVersions once none was. A migration that was interrupted, or stopped with a FailingError, is run again
// from its beginning.
func (m *Migration) Run(ctx context.Context, p *Plan) (*Result, error) {
	r := &Result{}
	if !pause(ctx, m.Unsettled(p)) {
		return r, ctx.Err()
	}
	visit := m.visitor(ctx, p, r)
	err := m.each(ctx, p, visit)
	if err == nil {
		err = m.again(ctx, p, r, visit)
	}
	if err != nil || r.Refused > 0 {
		return r, err
	}
	return r, m.trim(ctx, p, r)
}

// visitor returns what rewrites one object, if it may still.
func (m *Migration) visitor(
	ctx context.Context, p *Plan, r *Result,
) func(u *unstructured.Unstructured, left int64) error {
	limiter := flowcontrol.NewFakeAlwaysRateLimiter()
	if m.Rate > 0 {
		limiter = flowcontrol.NewTokenBucketRateLimiter(m.Rate, 1)
	}
	looked := time.Time{}
	return func(u *unstructured.Unstructured, left int64) error {
		if m.OnlyNeeded && len(p.Before) == 0 && !namesLeaving(u, p) {
			return nil
		}
		if err := limiter.Wait(ctx); err != nil {
			return err
		}
		if m.Leads != nil && !m.Leads() {
			return ErrNotLeading
		}
		if time.Since(looked) >= lookInterval { // what a changed schema does not declare would be lost by each further write
			if err := m.unchanged(ctx, p); err != nil {
				return err
			}
			looked = time.Now()
		}
		err := m.object(ctx, p, u, r)
		if r.Left = left; m.Progress != nil && ctx.Err() == nil {
			m.Progress(r.Progress)
		}
		return err
	}
}

// unchanged returns ErrChanged where the definition is another one than the migration began with.
func (m *Migration) unchanged(ctx context.Context, p *Plan) error {
	crd, err := kinds.ReadDefinition(ctx, m.Client, m.CRD)
	if err == nil && identityOf(crd) != p.id {
		return ErrChanged
	}
	return err
}

// scattered is an order of n items, always the same, in which neighbors are far apart: those that fail by themselves
// often are neighbors (objects of one namespace with a webhook), and must not look like a server that fails whatever
// the object.
func scattered(n int) []int { return rand.New(rand.NewPCG(1, 1)).Perm(n) }

// each pages through the objects, each page in a scattered order. left is how many come after that one, by the API
// server's estimate.
func (m *Migration) each(
	ctx context.Context, p *Plan, visit func(_ *unstructured.Unstructured, left int64) error,
) error {
	list := func(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		page, err := m.Client.Resource(p.resource).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", p.resource.GroupResource(), err)
		}
		return page, nil
	}
	return pages.Each(ctx, metav1.ListOptions{Limit: pageSize}, list, func(page *unstructured.UnstructuredList) error {
		left := int64(len(page.Items))
		if behind := page.GetRemainingItemCount(); behind != nil {
			left += *behind
		}
		for _, i := range scattered(len(page.Items)) {
			left--
			if err := visit(&page.Items[i], left); err != nil || ctx.Err() != nil {
				return cmp.Or(ctx.Err(), err)
			}
		}
		return nil
	})
}

// object rewrites one object. Another writer that was faster has rewritten it. An error ends the migration.
func (m *Migration) object(ctx context.Context, p *Plan, u *unstructured.Unstructured, r *Result) error {
	u, filled, err := m.fill(ctx, p, u)
	fixed, guessed := false, false
	if err == nil {
		fixed, guessed, err = m.fixManagers(ctx, p, u)
	}
	if err == nil && !filled && !fixed {
		err = m.rewrite(ctx, p, u)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Done++
	if filled {
		r.Filled++
	}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return r.refuse(Refusal{types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, err})
	default:
		if r.Rewritten++; fixed {
			r.Fixed++
		}
		if fixed && guessed {
			r.Guessed++
		}
	}
	r.failures = 0
	return nil
}

// refuse adds an object that could not be rewritten. It returns a FailingError if the reason is the API server, not the
// object.
func (r *Result) refuse(refusal Refusal) error {
	if r.Refused++; len(r.Refusals) < refusalsKept {
		r.Refusals = append(r.Refusals, refusal)
	}
	if r.failures++; !refusal.mayPass() {
		r.failures = 0
	}
	if r.failures == maxFailures {
		return &FailingError{refusal.Err}
	}
	return nil
}

// rewrite applies nothing but the object's identity: the API server stores what it has, in the stored version. An apply
// by a manager that has applied fields would remove them.
func (m *Migration) rewrite(ctx context.Context, p *Plan, u *unstructured.Unstructured) error {
	if slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == m.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	}) {
		return fmt.Errorf("field manager %s has applied fields of it, which the migration would remove: choose a field "+
			"manager of its own",
			m.FieldManager)
	}
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(u.GroupVersionKind())
	empty.SetName(u.GetName())
	empty.SetNamespace(u.GetNamespace())
	empty.SetUID(u.GetUID())
	empty.SetResourceVersion(u.GetResourceVersion())
	objects, options := m.Client.Resource(p.resource).Namespace(u.GetNamespace()),
		metav1.ApplyOptions{FieldManager: m.FieldManager}
	_, err := objects.Apply(ctx, u.GetName(), empty, options)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) { // a webhook or rule need not be about the status
		if _, again := objects.ApplyStatus(ctx, u.GetName(), empty, options); again == nil || apierrors.IsConflict(again) {
			return nil
		}
	}
	if apierrors.IsConflict(err) {
		return nil // someone has written it just now, in the stored version
	}
	return err
}

// trim names the stored version alone in status.storedVersions, if the definition is the one that the migration began
// with. A conflict need not mean that it is another one: conditions are written, too.
func (m *Migration) trim(ctx context.Context, p *Plan, r *Result) error {
	for try := 1; ; try++ {
		err := m.trimOnce(ctx, p)
		if r.Trimmed = err == nil; !apierrors.IsConflict(err) || try == tries {
			return err
		}
	}
}

func (m *Migration) trimOnce(ctx context.Context, p *Plan) error {
	crd, err := kinds.ReadDefinition(ctx, m.Client, m.CRD)
	if err != nil {
		return err
	}
	if identityOf(crd) != p.id {
		return ErrChanged
	}
	if slices.Equal(crd.Status.StoredVersions, []string{p.Stored}) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.ResourceVersion},
		"status":   map[string]any{"storedVersions": []string{p.Stored}},
	})
	if err != nil {
		return err
	}
	_, err = m.Client.Resource(kinds.DefinitionResource).
		Patch(ctx, m.CRD, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: m.FieldManager}, "status")
	if err != nil {
		return fmt.Errorf("writing status.storedVersions of CustomResourceDefinition %s: %w", m.CRD, err)
	}
	return nil
}

// Leaving are the versions that managedFields must not name any more.
func (p *Plan) Leaving() []string { return p.leaving }

// Unconverted are those of the versions that leave whose managedFields nothing converts.
func (p *Plan) Unconverted() []string {
	return slices.DeleteFunc(slices.Clone(p.leaving), p.owners.Has)
}
