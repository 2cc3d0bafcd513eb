package healthchecks

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"
)

// ArgoCDKey is the key in the data of Argo CD's ConfigMap argocd-cm under which it looks for the health check of a
// kind: that of the core group has no group in it.
func (h Health) ArgoCDKey() string {
	if h.Kind.Group == "" {
		return "resource.customizations.health." + h.Kind.Kind
	}
	return fmt.Sprintf("resource.customizations.health.%s_%s", h.Kind.Group, h.Kind.Kind)
}

// ArgoCD is the health check of the kind in Lua, as Argo CD runs it: obj is the object, a table with status and message
// is returned. It uses no library, since Argo CD opens none beside base and table. The statuses are Argo CD's: Healthy,
// Progressing, Degraded (someone must act) and Suspended (paused); the worst of all operators counts.
func (h Health) ArgoCD() (string, error) {
	var out bytes.Buffer
	err := argoCD.Execute(&out, map[string]any{"Operators": h.Operators, "Stalling": stalling})
	if err != nil {
		return "", fmt.Errorf("writing the health check of %s: %w", h.Kind.Kind, err)
	}
	return out.String(), nil
}

// lua is a text as a Lua string.
func lua(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

var argoCD = template.Must(template.New("").Funcs(template.FuncMap{"lua": lua}).Parse(argoCDText))

//nolint:dupword // Lua closes each block with end.
const argoCDText = `local operators = {
{{- range .Operators}}
  {name = {{lua .Name}}, ready = {{lua .Types.Ready}}{{with .Types.Stalled}}, stalled = {{lua .}}{{end}}
    {{- with .Pause}}, pause = {{lua .}}{{end}}},
{{- end}}
}
-- Reasons of not being ready that need somebody to act, for operators that have no condition to say so.
local stalling = {
{{- range $i, $reason := .Stalling}}{{if $i}}, {{end}}{{$reason}} = true{{end -}}
}
local rank = {Healthy = 0, Suspended = 1, Progressing = 2, Degraded = 3}
local health = {status = "Healthy", message = ""}

local function atLeast(status, message)
  if rank[status] > rank[health.status] or health.message == "" and status == health.status then
    health = {status = status, message = message or ""}
  end
end

-- A condition, unless it speaks of an older generation.
local function condition(name)
  for _, c in ipairs(obj.status and obj.status.conditions or {}) do
    if c.type == name and (c.observedGeneration or obj.metadata.generation) == obj.metadata.generation then
      return c
    end
  end
end

for _, operator in ipairs(operators) do
  local ready = condition(operator.ready)
  local paused = operator.pause and (obj.metadata.annotations or {})[operator.pause] == "true"
  if ready == nil and paused then
    atLeast("Suspended", "paused: operator " .. operator.name .. " does not act on this generation")
  elseif ready == nil then
    atLeast("Progressing", "operator " .. operator.name .. " has not seen this generation yet")
  else
    local stalled = stalling[ready.reason]
    if operator.stalled then
      local c = condition(operator.stalled)
      stalled = c ~= nil and c.status == "True"
    end
    if ready.status ~= "True" and stalled then
      atLeast("Degraded", ready.message)
    elseif paused then
      atLeast("Suspended", ready.message)
    elseif ready.status ~= "True" then
      atLeast("Progressing", ready.message)
    else
      atLeast("Healthy", ready.message)
    end
  end
end
if obj.metadata.deletionTimestamp ~= nil then
  atLeast("Progressing", "it is being deleted")
end
return health
`
