package controlplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// auditPolicy logs one line for each request, without bodies but for those of one more rule, except those of the
// control plane itself.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    users: ["system:apiserver"]
%s  - level: Metadata
`

// auditBodies is a rule by which the audit log has the bodies of requests for a resource of a group.
const auditBodies = `  - level: Request
    verbs: [create, update, patch]
    resources: [{group: %q, resources: [%s]}]
`

// ErrNoAudit means that the control plane was started without Options.Audit.
var ErrNoAudit = errors.New("the control plane keeps no audit log: start it with Audit")

// AuditEvent is one request as the API server saw it.
type AuditEvent struct {
	// Verb is the RBAC verb: get, list, watch, create, update, patch, delete or deletecollection; in lower case.
	Verb string `json:"verb"`
	// Stage is ResponseComplete, or ResponseStarted for an open watch.
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
	// Received is when the API server received it, Done when it wrote this line.
	Received time.Time `json:"requestReceivedTimestamp"`
	Done     time.Time `json:"stageTimestamp"`
	User     struct {
		Username string `json:"username"`
	} `json:"user"`
	// ImpersonatedUser is the impersonated user, or nil.
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	// ObjectRef is nil for requests without a resource (discovery, health).
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		APIVersion  string `json:"apiVersion"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	// Object is the body of the request, for the resource of Options.AuditBodies.
	Object         json.RawMessage `json:"requestObject"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// configureAudit makes the API server write an audit log into the scratch directory, line by line before it responds,
// so that a request with a response is in it. bodies is Options.AuditBodies.
func (c *ControlPlane) configureAudit(flags *envtest.Arguments, bodies string) error {
	policy, rule := filepath.Join(c.dir, "audit-policy.yaml"), ""
	if bodies != "" {
		resource := schema.ParseGroupResource(bodies)
		rule = fmt.Sprintf(auditBodies, resource.Group, resource.Resource)
	}
	if err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, rule), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	c.audit = filepath.Join(c.dir, "audit.log")
	flags.Set("audit-policy-file", policy)
	flags.Set("audit-log-path", c.audit)
	flags.Set("audit-log-mode", "blocking")
	// one file: by default it rotates after 100 MB, and ReadAudit would lose the older part
	flags.Set("audit-log-maxsize", "0")
	return nil
}

// ReadAudit returns every request that the API server has completed, in the order of the responses; a watch is in it
// once, from its start.
func (c *ControlPlane) ReadAudit() ([]AuditEvent, error) {
	events, _, err := c.ReadAuditFrom(0)
	return events, err
}

// ReadAuditFrom is ReadAudit from an offset in bytes on, and returns the offset
// to continue from.
func (c *ControlPlane) ReadAuditFrom(offset int64) ([]AuditEvent, int64, error) {
	if c.audit == "" {
		return nil, offset, ErrNoAudit
	}
	file, err := os.Open(c.audit)
	if err != nil {
		return nil, offset, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, offset, fmt.Errorf("reading the audit log: %w", err)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, offset, fmt.Errorf("reading the audit log: %w", err)
	}
	var events []AuditEvent
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // incomplete line
		}
		var event AuditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, offset, fmt.Errorf("parsing the audit log: %w", err)
		}
		offset += int64(len(line))
		if event.Verb == "watch" && event.Stage == "ResponseComplete" {
			continue // its ResponseStarted is in the list
		}
		events = append(events, event)
	}
	return events, offset, nil
}
