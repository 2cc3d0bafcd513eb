package backup

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Unknown counts objects of one kind about which a dry run cannot ask the API server.
type Unknown struct {
	Kind, Why string
	Objects   int
}

func (r *Restore) dryRun() []string {
	if r.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// missingFor names what does not exist in a dry run, so that the API server would refuse every object.
func (p *pass) missingFor(t *target, namespace string) string {
	switch {
	case !p.DryRun:
	case t.install != nil:
		return fmt.Sprintf("CustomResourceDefinition %s does not exist yet", t.Name())
	case slices.Contains(p.plan.Namespaces, namespace), p.plan.archived[namespace] != "":
		return fmt.Sprintf("Namespace %s does not exist yet", namespace)
	}
	return ""
}

// unknown counts an object about which the API server cannot be asked. What it owns is asked for as if it existed.
func (p *pass) unknown(t *target, u *unstructured.Unstructured, why string) {
	p.now[u.GetUID()] = u.GetUID()
	list := p.result.Unknown
	i := slices.IndexFunc(list, func(x Unknown) bool { return x.Kind == t.Name() && x.Why == why })
	if i < 0 {
		i = len(list)
		p.result.Unknown = append(p.result.Unknown, Unknown{Kind: t.Name(), Why: why})
	}
	p.result.Unknown[i].Objects++
}

// checkStatus compares the status of an object of a custom kind, which the API server cannot be asked about before the
// object exists, with the schema. made is the object without it.
func (p *pass) checkStatus(ctx context.Context, t *target, u, made *unstructured.Unstructured) error {
	status, ok := u.Object["status"]
	if !ok || !t.HasStatus || t.version == nil {
		return nil
	}
	before := map[string]any{"status": status}
	with := runtime.DeepCopyJSON(made.Object)
	with["status"] = runtime.DeepCopyJSONValue(status)
	t.version.Coerce(with)
	if err := t.version.ValidateWrite(ctx, with, made.Object, "status", nil).ToAggregate(); err != nil {
		return fmt.Errorf("restoring status and managedFields: %w", err)
	}
	p.compare(t, u, before, map[string]any{"status": with["status"]})
	return nil
}

// readVersion reads the schema of a version of a definition.
func readVersion(live *unstructured.Unstructured, name string) (*kinds.Version, error) {
	crd, err := typed(live)
	if err != nil {
		return nil, err
	}
	versions, err := kinds.Versions(crd)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err)
	}
	return versions[slices.IndexFunc(versions, func(v *kinds.Version) bool { return v.Name == name })], nil
}
