package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/backup/archive"
	"github.com/corollary-dev/corollary/pkg/backup/contents"
)

// checkTaken refuses to replace an object of another owner: one that exists, and that the object does not get from the
// backup. Where the object names no owner, the archived one counts, if it exists and the object is restored for another
// one.
func (p *pass) checkTaken(ctx context.Context, u, want, existing *unstructured.Unstructured) error {
	operators := p.everyOperator()
	held := contents.Owners(existing, operators)
	if len(held) == 0 && p.namespace(u.GetNamespace()) == u.GetNamespace() {
		held = contents.Owners(u, operators)
	}
	restored := contents.Owners(want, operators)
	for _, o := range held {
		if slices.ContainsFunc(restored, o.Is) {
			continue
		}
		exists, err := p.exists(ctx, o)
		if err != nil {
			return err
		}
		if exists {
			return fmt.Errorf("it belongs to %s, which exists, so it is not replaced: to restore it, delete that owner first",
				&o)
		}
	}
	return p.checkUnknownMarks(want, existing)
}

// isOthers reports whether an object that exists names no owner of the object in the backup: neither as it is now, nor
// as it was, if it is not restored elsewhere.
func (p *pass) isOthers(u, want, existing *unstructured.Unstructured) bool {
	operators := p.everyOperator()
	before := slices.DeleteFunc(contents.Owners(u, operators), p.isMoved)
	owners := slices.Concat(contents.Owners(want, operators), before)
	return !slices.ContainsFunc(contents.Owners(existing, operators), func(o contents.Owner) bool {
		return slices.ContainsFunc(owners, o.Is)
	})
}

// everyOperator has those of the backup too: objects may still have owner annotations that configs have no more.
func (r *Restore) everyOperator() []archive.Operator {
	return slices.Concat(r.Operators, r.Archive.Manifest.Operators)
}

// exists reports whether the cluster has an owner, with its uid.
func (p *pass) exists(ctx context.Context, o contents.Owner) (bool, error) {
	gvr, namespaced, err := p.ownerResource(o)
	var unserved *ownerError
	if errors.As(err, &unserved) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !namespaced {
		o.Namespace = ""
	}
	live, err := p.Client.Resource(gvr).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking up its owner %s: %w", &o, err)
	}
	return live.GetUID() == o.UID, nil
}

var uidPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// checkUnknownMarks refuses to replace an object with an owner that nobody can be asked about: a row of a database, or
// an upstream of an operator that the restore does not know.
func (p *pass) checkUnknownMarks(want, existing *unstructured.Unstructured) error {
	annotations := existing.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		mark := annotations[key]
		_, uid, ok := contents.ParseMark(mark)
		if !ok || want.GetAnnotations()[key] == mark {
			continue
		}
		known := slices.ContainsFunc(p.everyOperator(), func(o archive.Operator) bool {
			return slices.Contains(o.Owners, key)
		})
		switch {
		case known && strings.Contains(uid, ":"):
			return fmt.Errorf("its annotation %s says that it belongs to the row %s, so it is not replaced: to restore it, "+
				"remove the annotation first", key, mark)
		case !known && uidPattern.MatchString(uid):
			return fmt.Errorf("its annotation %s says that it belongs to %s, of an operator that is not known here, so it is "+
				"not replaced: name "+
				"its config with -c, or remove the annotation first", key, mark)
		}
	}
	return nil
}
