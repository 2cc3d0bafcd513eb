package apply

import (
	"context"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// jsonPatch is an RFC 6902 patch for an object as it was read: it begins with tests of uid and resourceVersion, so that
// its indexes are still right. If a test fails, nothing is written.
type jsonPatch []any

func patchOf(live *unstructured.Unstructured) jsonPatch {
	var p jsonPatch
	p.test(string(live.GetUID()), "metadata", "uid")
	p.test(live.GetResourceVersion(), "metadata", "resourceVersion")
	return p
}

func (p *jsonPatch) test(value any, path ...string) {
	*p = append(*p, map[string]any{"op": "test", "path": pointer(path), "value": value})
}

func (p *jsonPatch) add(value any, path ...string) {
	*p = append(*p, map[string]any{"op": "add", "path": pointer(path), "value": value})
}

func (p *jsonPatch) remove(path ...string) {
	*p = append(*p, map[string]any{"op": "remove", "path": pointer(path)})
}

// replace replaces the whole object.
func (p *jsonPatch) replace(object map[string]any) {
	*p = append(*p, map[string]any{"op": "replace", "path": "", "value": object})
}

// empty reports whether the patch has only tests.
func (p *jsonPatch) empty() bool {
	for _, o := range *p {
		if o.(map[string]any)["op"] != "test" {
			return false
		}
	}
	return true
}

// pointer returns the RFC 6901 pointer: keys of labels and annotations contain slashes.
func pointer(path []string) string {
	var b strings.Builder
	for _, s := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(s))
	}
	return b.String()
}

func index(i int) string { return strconv.Itoa(i) }

// send applies p. ErrConflict: a test failed, so the object is not as it was read.
func (p jsonPatch) send(ctx context.Context, c *Client, o op, t Target) (*unstructured.Unstructured, *Error) {
	out, failed := c.patch(ctx, o, t, types.JSONPatchType, []any(p), metav1.PatchOptions{})
	if failed == nil {
		return out, nil
	}
	if failed = failed.meaningFor(t); failed.Meaning == nil && testFailed(failed.Err) {
		failed = failed.meaning(ErrConflict)
	}
	return nil, failed
}

// testFailed reports whether a JSON patch did not fit the object. The API server returns 422 as for an invalid object,
// but without causes, because it did not validate one. A 409 is a concurrent write.
func testFailed(err error) bool {
	s, ok := status(err)
	if !ok {
		return false
	}
	unfit := s.Reason == metav1.StatusReasonInvalid && (s.Details == nil || len(s.Details.Causes) == 0)
	return unfit || s.Reason == metav1.StatusReasonConflict
}
