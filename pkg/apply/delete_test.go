package apply

import "testing"

func TestDeletionOf(t *testing.T) {
	const object = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": `
	for _, row := range []struct {
		reason, answer    string
		gone, terminating bool
	}{
		{"the API server says what it deleted", `{"apiVersion": "v1", "kind": "Status", "status": "Success", "details": {"uid": "u"}}`, true, false},
		{"another API server may have begun to", `{"apiVersion": "v1", "kind": "Status", "status": "Success"}`, false, false},
		{"it says that something else is deleted", `{"apiVersion": "v1", "kind": "Status", "status": "Success", "details": {"uid": "v"}}`, false, false},
		{"a finalizer holds it", object + `"u", "deletionTimestamp": "2026-01-01T00:00:00Z"}}`, false, true},
		{"the last state of one that is deleted", object + `"u"}}`, true, false},
		{"another object", object + `"v"}}`, false, false},
		{"nothing was kept", "", false, false},
	} {
		if d := deletionOf([]byte(row.answer), "u"); d.Gone != row.gone || (d.Terminating != nil) != row.terminating {
			t.Errorf("%s: %+v", row.reason, d)
		}
	}
}
