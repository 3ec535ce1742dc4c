{{/* What the daemon's pod and the pods of jobs have in common. */}}
{{- define "ingestd.placement" -}}
serviceAccountName: {{ include "ingestd.serviceAccount" . }}
automountServiceAccountToken: {{ or .Values.serviceAccount.automountToken .Values.rbac.create }}
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "hostAliases" "dnsConfig" }}
{{- with index $.Values $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
volumes:
  - name: config
    configMap:
      name: {{ include "ingestd.configMap" . }}
  {{- with .Values.existingSecret }}
  - name: secrets
    secret:
      secretName: {{ . }}
      defaultMode: 0440
  {{- end }}
  - name: scratch
    emptyDir:
      sizeLimit: {{ .Values.scratchSize }}
  {{- if .Values.persistence.enabled }}
  - name: lake
    persistentVolumeClaim:
      claimName: {{ include "ingestd.claim" . }}
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* A volume of one node: pods beside the daemon go where it is, if they can. */}}
{{- define "ingestd.beside" -}}
{{- if and .Values.persistence.enabled (not .Values.affinity) (not (has "ReadWriteMany" .Values.persistence.accessModes)) -}}
affinity:
  podAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "ingestd.daemon" . | nindent 14 }}
{{- end }}
{{- end }}

{{- define "ingestd.container" -}}
image: {{ include "ingestd.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.containerSecurityContext | nindent 2 }}
{{- with .Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: config
    mountPath: /etc/ingestd
    readOnly: true
  {{- if .Values.existingSecret }}
  - name: secrets
    mountPath: /run/secrets/ingestd
    readOnly: true
  {{- end }}
  - name: scratch
    mountPath: /tmp
  {{- if .Values.persistence.enabled }}
  - name: lake
    mountPath: {{ .Values.persistence.mountPath }}
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
