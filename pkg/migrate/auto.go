package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/logging"
)

const (
	// minRetry and maxRetry bound the delay after an attempt in which something was refused.
	minRetry, maxRetry = time.Minute, time.Hour
	// refusalsShown is how many refused objects an event names.
	refusalsShown = 3
)

// Auto migrates kinds whose definition stores another version than before, or does not serve one any more: each in the
// background, and only in the process that leads. Attempts that fail are repeated with growing delay.
type Auto struct {
	Client dynamic.Interface
	// Rate is how many objects of a kind are rewritten each second at most.
	Rate float32
	// Leads reports whether this process may write.
	Leads func() bool
	// Recorder makes what records events about definitions, under the name of an operator or conversion.
	Recorder func(name string) events.EventRecorder
	Log      logr.Logger

	mu       sync.Mutex
	attempts map[string]*attempt
	done     sync.WaitGroup
}

// attempt is the last one for a definition.
type attempt struct {
	id            identity
	running, over bool // over: nothing is left to do
	next          time.Time
	delay         time.Duration
}

// Candidate is a kind whose objects may have to be migrated.
type Candidate struct {
	CRD *apiextensionsv1.CustomResourceDefinition
	// Name of the operator or conversion.
	Name string
	// FieldManager writes the objects.
	FieldManager string
	// Converts reports whether a version can be converted by what is proven.
	Converts func(version string) bool
	// Converter is for Migration.
	Converter *convert.Converter
}

// Consider begins a migration if the definition needs one and its turn has come. It returns what keeps a migration from
// beginning.
func (a *Auto) Consider(ctx context.Context, c Candidate) error {
	crd := c.CRD
	before := storedBefore(crd)
	pending.WithLabelValues(crd.Name).Set(map[bool]float64{true: 1}[len(before) > 0])
	unserved := slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !v.Served
	})
	if !a.Leads() || len(before) == 0 && !unserved {
		return nil
	}
	for _, version := range before {
		if !c.Converts(version) {
			return fmt.Errorf("CustomResourceDefinition %s: objects may be stored as %s, which the conversion does not have: "+
				"they are not migrated",
				crd.Name, version)
		}
	}
	if !a.begin(crd) {
		return nil
	}
	m := &Migration{
		Client: a.Client, CRD: crd.Name, FieldManager: c.FieldManager, Rate: a.Rate, OnlyNeeded: true,
		Leads: a.Leads, Settle: SettleTime,
		Progress: observe(crd.Name), Converter: c.Converter,
	}
	a.done.Go(func() { a.finish(c, a.migrate(ctx, m, c)) })
	return nil
}

// Forget removes the metrics of a definition that is not considered any more. A migration of it that runs goes on.
func (a *Auto) Forget(crd string) {
	pending.DeleteLabelValues(crd)
	migrated.DeletePartialMatch(prometheus.Labels{"crd": crd})
}

// storedBefore are the versions in which objects may be stored, without the one that is stored now.
func storedBefore(crd *apiextensionsv1.CustomResourceDefinition) (versions []string) {
	for _, v := range crd.Status.StoredVersions {
		stored := func(s apiextensionsv1.CustomResourceDefinitionVersion) bool { return s.Name == v && s.Storage }
		if !slices.ContainsFunc(crd.Spec.Versions, stored) {
			versions = append(versions, v)
		}
	}
	return versions
}

// begin reports whether a migration of the definition begins now.
func (a *Auto) begin(crd *apiextensionsv1.CustomResourceDefinition) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.attempts[crd.Name]
	if t == nil {
		t = &attempt{}
		if a.attempts == nil {
			a.attempts = map[string]*attempt{}
		}
		a.attempts[crd.Name] = t
	}
	same := t.id == identityOf(crd)
	if t.running || same && (t.over && len(storedBefore(crd)) == 0 || time.Now().Before(t.next)) {
		return false
	}
	if !same {
		*t = attempt{id: identityOf(crd)}
	}
	t.running = true
	return true
}

func (a *Auto) migrate(ctx context.Context, m *Migration, c Candidate) error {
	p, err := m.Plan(ctx)
	if err != nil {
		return err
	}
	a.Log.Info("stored objects are migrated", "crd", m.CRD, "objects", p.Objects, "stored", p.Stored, "before", p.Before)
	r, err := m.Run(ctx, p)
	switch {
	case err != nil:
		return err
	case r.Refused > 0:
		return refusedError(r)
	}
	if r.Rewritten > 0 || len(p.Before) > 0 {
		a.Log.Info("stored objects were migrated", "crd", m.CRD, "rewritten", r.Rewritten, "stored", p.Stored)
		a.event(c, corev1.EventTypeNormal, "Migrated",
			fmt.Sprintf("%d objects rewritten; status.storedVersions is [%s]", r.Rewritten, p.Stored))
	}
	return nil
}

// refusedError says which objects could not be rewritten.
func refusedError(r *Result) error {
	var shown []string
	for _, refusal := range r.Refusals[:min(refusalsShown, len(r.Refusals))] {
		shown = append(shown, fmt.Sprintf("%s: %v", refusal.Object, refusal.Err))
	}
	if more := r.Refused - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("%d objects could not be rewritten, and status.storedVersions is unchanged: fix them: %s",
		r.Refused, strings.Join(shown, "; "))
}

// finish notes how an attempt ended, and when the next one may begin.
func (a *Auto) finish(c Candidate, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	crd := c.CRD
	t := a.attempts[crd.Name]
	t.running = false
	left.DeleteLabelValues(crd.Name)
	switch {
	case err == nil:
		t.over, t.delay = true, 0
		return
	case errors.Is(err, ErrChanged), errors.Is(err, ErrNotLeading), errors.Is(err, context.Canceled):
		return // the next look begins again
	}
	t.delay = min(max(2*t.delay, minRetry), maxRetry)
	t.next = time.Now().Add(t.delay)
	logging.Warn(a.Log, "not all stored objects are migrated", "crd", crd.Name, "retry",
		t.delay.String(), "error", err.Error())
	a.event(c, corev1.EventTypeWarning, "MigrationFailed", err.Error())
}

// event records an event about a definition, in the namespace default, where those of cluster-scoped objects are.
func (a *Auto) event(c Candidate, kind, reason, text string) {
	about := c.CRD.DeepCopy()
	about.APIVersion, about.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	a.Recorder(c.Name).Eventf(about, nil, kind, reason, "Migrate", "%s", text)
}
