package report

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/status"
)

// RowState is the state of a row: what the condition Ready of an object would say.
type RowState struct {
	// State is one of the words below.
	State string
	// Ready is the status of Ready: True, False or Unknown.
	Ready string
	// Reason and Message are those of Ready.
	Reason, Message string
}

// Parameters are those of source.writeBack, beside the key.
func (s RowState) Parameters() map[string]string {
	return map[string]string{query.RowState: s.State, query.RowReady: s.Ready, query.RowReason: s.Reason,
		query.RowMessage: s.Message}
}

// The states of a row.
const (
	// RowReady: every downstream that is wanted is ready.
	RowReady = "Ready"
	// RowProgressing: one is not ready yet, or is retried.
	RowProgressing = "Progressing"
	// RowFailed: a rule refuses the row, or a downstream needs someone to fix it.
	RowFailed = "Failed"
)

// rowStateOf is the state that a summary means.
func rowStateOf(summary status.Summary) RowState {
	summary.Types = status.Types{Ready: "Ready", Stalled: "Stalled"}
	row := RowState{State: RowProgressing}
	for _, c := range status.Summarize(summary) {
		switch c.Type {
		case summary.Types.Stalled:
			row.State = RowFailed
		case summary.Types.Ready:
			row.Ready, row.Reason, row.Message = string(c.Status), c.Reason, c.Message
			if c.Status == metav1.ConditionTrue {
				row.State = RowReady
			}
		}
	}
	return row
}
