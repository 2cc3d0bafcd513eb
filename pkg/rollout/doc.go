// Package rollout decides how many upstreams a changed config may reach now: step by step, and no further once they
// fail. It reads what the cluster shows, stores nothing, and sends no request.
package rollout
