package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestDiscard: the Lease goes as it was seen with nobody holding it; whoever takes it meanwhile keeps it.
func TestDiscard(t *testing.T) {
	for _, row := range []struct {
		reason  string
		get     int // what the API server answers
		holder  string
		remove  int // the same, to the deletion; 0: there must be none
		says    string
		failure string
	}{
		{"nobody needs it", 200, "", 200, "", ""},
		{"it was never made", 404, "", 0, "", ""},
		{"somebody leads again", 200, "you", 0, "Lease apps/lease is kept: you holds it now", ""},
		{"somebody takes it at this moment", 200, "", 409, "Lease apps/lease is kept: it was just taken", ""},
		{"somebody else deletes it", 200, "", 404, "", ""},
		{"it may not be deleted", 200, "", 403, "", "deleting Lease apps/lease, which nobody needs any more: "},
		{"it may not be read", 403, "", 0, "", "deleting Lease apps/lease, which nobody needs any more: "},
	} {
		t.Run(row.reason, func(t *testing.T) {
			removed := false
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				code, body := row.get,
					fmt.Sprintf(`{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "lease", "resourceVersion": "7"}, "spec": {"holderIdentity": %q}}`, row.holder)
				if r.Method == http.MethodDelete {
					removed, code = true, row.remove
					var options metav1.DeleteOptions
					if err := json.NewDecoder(r.Body).Decode(&options); err != nil || options.Preconditions == nil ||
						*options.Preconditions.ResourceVersion != "7" {
						t.Errorf("it is deleted whatever it is by then: %+v (%v)", options, err)
					}
				}
				if reasons := map[int]string{403: "Forbidden", 404: "NotFound", 409: "Conflict"}; reasons[code] != "" {
					body = fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d}`, reasons[code], code)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				_, _ = w.Write([]byte(body))
			}))
			defer server.Close()
			out := &bytes.Buffer{}
			json := rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}
			err := (&Alone{Lease: "lease", Namespace: "apps"}).discard(t.Context(), &rest.Config{Host: server.URL, ContentConfig: json}, out)
			if removed != (row.remove != 0) || strings.TrimSpace(out.String()) != row.says {
				t.Errorf("deleted: %v; it says %q, want %q", removed, out, row.says)
			}
			if (err != nil) != (row.failure != "") || err != nil && !strings.HasPrefix(err.Error(), row.failure) {
				t.Errorf("it fails with %v, want %q", err, row.failure)
			}
		})
	}
}
