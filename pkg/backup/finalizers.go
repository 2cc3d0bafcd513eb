package backup

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

// noteFinalizers counts finalizers that nobody is known to remove.
func (p *pass) noteFinalizers(t *target, u *unstructured.Unstructured) {
	for _, name := range u.GetFinalizers() {
		ours := func(o archive.Operator) bool { return slices.Contains(o.Finalizers, name) }
		if !isStandardFinalizer(name) && !slices.ContainsFunc(p.Operators, ours) {
			p.unknownFinalizers[[2]string{t.Name(), name}]++
		}
	}
}

// isStandardFinalizer reports whether a controller of Kubernetes removes a finalizer.
func isStandardFinalizer(name string) bool {
	domain, _, hasDomain := strings.Cut(name, "/")
	isOf := func(suffix string) bool { return domain == suffix || strings.HasSuffix(domain, "."+suffix) }
	return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents ||
		hasDomain && (isOf("kubernetes.io") || isOf("k8s.io"))
}

func (p *pass) finalizerNotes() (notes []string) {
	for key, n := range p.unknownFinalizers {
		objects := "1 object has"
		if n > 1 {
			objects = fmt.Sprintf("%d objects have", n)
		}
		notes = append(notes, fmt.Sprintf(
			"%s: %s the finalizer %s, and no config is known whose operator removes it: if its controller does "+
				"not run, the deletion never ends", key[0], objects, key[1]))
	}
	slices.Sort(notes)
	return notes
}
