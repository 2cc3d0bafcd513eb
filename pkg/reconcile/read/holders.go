package read

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// IsHolder reports whether an object contains others, which are deleted with it.
func IsHolder(s *operator.Settings, own operator.Owned) bool {
	d := s.Downstreams[own.Downstream].Config
	return decide.IsHolder(d.APIVersion, d.Kind)
}

// FindContents reads what the status records of downstreams that the config no longer has, if one of these objects or
// of left contains others, or the upstream is being deleted and waits, or left goes with it. What may not be read
// counts as what must be kept. What could not be read is among them too, with an error.
func (r *Reader) FindContents(
	ctx context.Context, left []operator.Owned,
) (found []operator.ForgottenObject, failed error) {
	recorded := append(r.Pipeline.Forgotten(r.Upstream), r.Unrecorded()...)
	holds := func(own operator.Owned) bool { return IsHolder(r.Pipeline.Settings, own) }
	waits := r.Pipeline.Config.Deletion.Wait || r.Cascade() == operator.CascadeForeground
	has := slices.ContainsFunc(left, holds) || r.Upstream.GetDeletionTimestamp() != nil && (waits || len(left) > 0)
	for _, rec := range recorded {
		has = has || decide.IsHolder(rec.APIVersion, rec.Kind)
	}
	if !has {
		return nil, nil
	}
	for _, rec := range recorded {
		t, obj, err := r.ReadForgotten(ctx, &rec)
		f := operator.ForgottenObject{Recorded: rec, Resource: t.GVR.GroupResource()}
		switch {
		case err != nil && apply.Classify(err).Reason == apply.ReasonForbidden:
			f.Referenced = decide.IsHolder(rec.APIVersion, rec.Kind)
		case err != nil:
			f.Unread, failed = true, err
		case obj == nil:
			continue
		default:
			f.Deleting = obj.GetDeletionTimestamp() != nil
			f.Referenced = slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
				return o.UID == r.Upstream.GetUID()
			})
		}
		found = append(found, f)
	}
	return found, failed
}

// FindOthers lists, for each of left that contains others, what belongs to another upstream that may exist and would be
// deleted with it: the first by name, so that what is reported of it stays the same. An upstream that the watch does
// not show may be left over, or a match condition cannot be evaluated for it: it is read, or an object whose upstream
// was made to go by force would keep this one, and nothing would end that.
func (r *Reader) FindOthers(ctx context.Context, left []operator.Owned) (found []operator.OtherObject) {
	type candidate struct {
		operator.OtherObject
		uid types.UID
	}
	read := map[types.UID]bool{}
	exists := func(c candidate) bool {
		if known := r.Cache.UpstreamUID(c.Of); known != "" {
			return known == c.uid
		}
		if !r.Pipeline.HidesUpstreams() && r.Cache.Watches(c.Of.Namespace) {
			return false
		}
		if _, ok := read[c.uid]; !ok {
			read[c.uid] = r.MayExist(ctx, c.Of, c.uid)
		}
		return read[c.uid]
	}
	for _, own := range left {
		var others []candidate
		holds := decide.Holds(r.Pipeline.Settings, own)
		for i := range r.Pipeline.Downstreams {
			if !IsHolder(r.Pipeline.Settings, own) {
				break
			}
			for _, live := range r.Cache.Objects(i) {
				at := operator.Ref{Namespace: live.Namespace, Name: live.Name}
				if !holds(i, at, operator.Ref{}) {
					continue
				}
				for _, of := range marks.UpstreamsOf(r.Pipeline.Settings, live) {
					if uid := marks.UIDOf(r.Pipeline.Settings, of, live); uid != r.Upstream.GetUID() && uid != "" && holds(i, at, of) {
						others = append(others, candidate{operator.OtherObject{Downstream: i, At: at, Of: of}, uid})
					}
				}
			}
		}
		slices.SortStableFunc(others, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.Downstream, b.Downstream), strings.Compare(a.At.String(), b.At.String()))
		})
		if k := slices.IndexFunc(others, exists); k >= 0 {
			found = append(found, others[k].OtherObject)
		}
	}
	return found
}
