package apply

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// Deletion is what the API server answered to an accepted deletion. If it is not Gone, the object exists until a watch
// shows it deleted, or a read does not find it: finalizers hold it, or a controller.
type Deletion struct {
	// Gone is true if the object does not exist any more.
	Gone bool
	// Terminating is the object that is being deleted; nil if the answer does not contain it.
	Terminating *unstructured.Unstructured
}

// Delete deletes the object with that uid. It returns nil as soon as the API server accepts the request, and also if
// the object is gone. ErrReplaced: another object has the name; nothing was deleted. propagation is required: without
// one the API server uses each kind's default, and the one of Jobs keeps their pods. The result is only known if
// KeepAnswers wraps the transport.
func (c *Client) Delete(
	ctx context.Context, t Target, uid types.UID, propagation metav1.DeletionPropagation,
) (Deletion, error) {
	o := op{verb: "delete", doing: "deleting", needs: "delete"}
	if uid == "" {
		return Deletion{}, &Error{Verb: o.verb, Target: t, Err: errNoUID, op: o}
	}
	var answer []byte
	err := c.resource(t).Delete(context.WithValue(ctx, answerKey{}, &answer), t.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &propagation,
		DryRun:            c.dryRun(),
	})
	failed := c.done(o, t, err)
	if failed == nil {
		return deletionOf(answer, uid), nil
	}
	if failed = c.explainConflict(ctx, t, uid, failed); errors.Is(failed, ErrGone) {
		return Deletion{Gone: true}, nil
	}
	return Deletion{}, failed
}

// deletionOf reads an answer. The API server answers with the object while it exists and, once it has deleted it, with
// its last state, which has no deletionTimestamp, or with a Status that names its uid. Other API servers may send a
// Status without, before anything is deleted.
func deletionOf(answer []byte, uid types.UID) Deletion {
	var u unstructured.Unstructured
	if json.Unmarshal(answer, &u.Object) != nil {
		return Deletion{}
	}
	if u.GetKind() == "Status" && u.GetAPIVersion() == "v1" {
		status, _, _ := unstructured.NestedString(u.Object, "status")
		deleted, _, _ := unstructured.NestedString(u.Object, "details", "uid")
		return Deletion{Gone: status == metav1.StatusSuccess && deleted == string(uid)}
	}
	switch {
	case u.GetUID() != uid:
		return Deletion{}
	case u.GetDeletionTimestamp() == nil:
		return Deletion{Gone: true}
	}
	return Deletion{Terminating: &u}
}

// answerKey is the key, in the context of a request, of where its answer is kept.
type answerKey struct{}

// KeepAnswers wraps a transport so that Delete learns what the API server answers: the dynamic client of client-go
// drops it.
func KeepAnswers(rt http.RoundTripper) http.RoundTripper { return answerKeeper{rt} }

type answerKeeper struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (k answerKeeper) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := k.RoundTripper.RoundTrip(request)
	into, ok := request.Context().Value(answerKey{}).(*[]byte)
	if err != nil || !ok {
		return response, err
	}
	text, err := io.ReadAll(response.Body)
	if closed := response.Body.Close(); err != nil || closed != nil {
		return nil, errors.Join(err, closed)
	}
	*into, response.Body = text, io.NopCloser(bytes.NewReader(text))
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (k answerKeeper) WrappedRoundTripper() http.RoundTripper { return k.RoundTripper }
