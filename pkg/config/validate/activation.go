package validate

import (
	"fmt"
	"time"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
	"github.com/corollary-dev/corollary/pkg/config/forms"
	"github.com/corollary-dev/corollary/pkg/config/lock"
)

// CheckActivation checks an activation. With anybody it needs no identity.
func CheckActivation(doc *document.Document, a *lock.Activation, anybody bool) config.Errors {
	v := &validator{Problems: document.Problems{Document: doc}}
	if v.required("metadata.name", a.Metadata.Name, "name the activation") {
		v.form(forms.DNSLabel, "metadata.name", a.Metadata.Name, a.Metadata.Name)
	}
	const identify = "set it, --activation-identity or COROLLARY_ACTIVATION_IDENTITY: different in each cluster"
	if (a.Identity != "" || !anybody) && v.required("identity", a.Identity, identify) {
		v.form(forms.IdentityName, "identity", a.Identity, a.Identity)
	}
	checkActivationLock(v, a)
	checkActivationTimes(v, a)
	return v.Errs
}

// retryJitter is by how much a renewal may come later than the retry period, as in client-go's leader election.
const retryJitter = 1.2

// checkActivationTimes checks what the times demand of one another, as leadership.Timings does.
func checkActivationTimes(v *validator, a *lock.Activation) {
	lease, deadline, retry := time.Duration(a.LeaseDuration), time.Duration(a.RenewDeadline), time.Duration(a.RetryPeriod)
	switch {
	case lease < time.Second || lease%time.Second != 0:
		v.Add("leaseDuration", "write whole seconds, at least 1s",
			"%s is not a number of whole seconds, which the lock stores", lease)
	case retry <= 0:
		v.Add("retryPeriod", "write one such as 2s", "%s is not longer than 0", retry)
	case lease <= deadline:
		v.Add("renewDeadline", "write less than "+lease.String(),
			"%s is not shorter than leaseDuration: a cluster must stop before another "+
				"one starts", deadline)
	case a.DNS != nil && a.DNS.Interval <= 0:
		v.Add("dns.interval", "write one such as 2s", "%s is not longer than 0", time.Duration(a.DNS.Interval))
	case a.DNS != nil && deadline <= 2*time.Duration(a.DNS.Interval):
		v.Add("dns.interval", fmt.Sprintf("write less than %s", deadline/2),
			"%s leaves no time to ask again within renewDeadline, which is %s, "+
				"if an answer is missing", time.Duration(a.DNS.Interval), deadline)
	case float64(deadline) <= retryJitter*float64(retry):
		v.Add("retryPeriod", fmt.Sprintf("write less than %s", time.Duration(float64(deadline)/retryJitter)),
			"%s leaves no time to try a failed renewal again within renewDeadline, which is %s", retry, deadline)
	}
}
