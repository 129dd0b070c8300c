// Questions to the server. Every one carries the token of the address.
const token = new URLSearchParams(location.search).get("token") ?? "";

export async function ask(path, { method = "GET", body } = {}) {
  const raw = body instanceof Blob;
  let response;
  try {
    response = await fetch(path, {
      method, body: body === undefined ? undefined : raw ? body : JSON.stringify(body),
      headers: { "X-Explorer-Token": token },
    });
  } catch {
    throw new Error("The explorer does not answer; is `neuromanifold explore` still running?");
  }
  const answer = await response.json().catch(() => ({ error: `The answer was not understood (${response.status}).` }));
  if (!response.ok) throw new Error(answer.error ?? `The explorer refused (${response.status}).`);
  return answer;
}

export const upload = (file) => ask(`/api/files?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });

// Runs a task in a worker; `onProgress` hears of it, and `cancel` stops it.
export function startJob(task, args, onProgress = () => {}) {
  let id = null, cancelled = false;
  const run = async () => {
    let job = await ask("/api/jobs", { method: "POST", body: { task, arguments: args } });
    id = job.id;
    if (cancelled) await ask(`/api/jobs/${id}`, { method: "DELETE" });
    while (job.state === "waiting" || job.state === "running") {
      onProgress(job);
      job = await ask(`/api/jobs/${id}?seen=${encodeURIComponent(job.message)}`);
    }
    if (job.state === "done") return job.result;
    throw Object.assign(new Error(job.message), { state: job.state });
  };
  return {
    result: run(),
    cancel: () => { cancelled = true; return id && ask(`/api/jobs/${id}`, { method: "DELETE" }).catch(() => {}); },
  };
}
