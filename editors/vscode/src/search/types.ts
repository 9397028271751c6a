// The types of the server's news of a search and of the panel's content, shared by the host and the page of the panel.

/** The part of a file that is optimized, in the server's format. */
export type Subject = "file" | { kernel: string } | { function: string };

export interface Tried {
  /** 0 is the root, which has no candidate, and 1 is the original file. */
  id: number;
  parent: number;
  /** Whether its structure differs from its parent's. */
  large: boolean;
  kind: string;
  change: string;
  fate: "open" | "right" | "wrong" | "uncompiled";
  speedup: number | null;
  seconds: number | null;
  reason: string | null;
}

export interface Confirmation {
  change: string;
  refused: string | null;
  label: string | null;
}

/** News of a search: the parameters of `warpsmith/search`. */
export interface News {
  job: string;
  started?: { uri: string; name: string; subject: Subject; budget: number };
  begun?: { run: string; date: string; environment: string; calls: string[] };
  candidates?: Tried[];
  confirmations?: Confirmation[];
  message?: string;
  seconds?: number;
  ended?: { how: "over" | "stopped" | "failed"; summary: string; offer: boolean };
}

/** The shown state of a search. */
export interface Search {
  /** The job name, if the search ran on the current server. */
  job: string | undefined;
  uri: string;
  /** Its name in the workspace, after it was stored. */
  run: string;
  name: string;
  subject: Subject;
  budget: number;
  seconds: number;
  environment: string;
  date: string;
  state: "running" | "over" | "stopped" | "failed";
  /** The current activity, or how the search ended. */
  message: string;
  candidates: Tried[];
  confirmations: Confirmation[];
  /** The parts of the report, if there is one: the change with its diff, and the sections of measurements. */
  report: { change: string | null; diff: string | null; page: string } | undefined;
}

/** One candidate, as returned by the server. */
export interface Detail extends Tried {
  diff: string;
  times: [number, number] | null;
  calls: { call: string; before_ms: number; ratio: number }[];
  remembered: boolean;
  twin: boolean;
}

/** A message from the host to the page. */
export type ToPage =
  | { kind: "search"; search: Search; canApply: boolean }
  | { kind: "news"; news: News }
  | { kind: "offer"; canApply: boolean }
  | { kind: "detail"; detail: Detail }
  | { kind: "no-detail"; id: number; why: string };

/** A message from the page to the host. */
export type FromPage = { kind: "ready" } | { kind: "candidate"; id: number } | { kind: "stop" | "resume" | "apply" };

export function begin(job: string | undefined): Search {
  return {
    job,
    uri: "",
    run: "",
    name: "",
    subject: "file",
    budget: 0,
    seconds: 0,
    environment: "",
    date: "",
    state: "running",
    message: "",
    candidates: [],
    confirmations: [],
    report: undefined,
  };
}

/** Merges news into a search. News of a known candidate replace it. */
export function fold(search: Search, news: News): void {
  const { started, begun, candidates = [], confirmations = [], message, seconds, ended } = news;
  if (started) Object.assign(search, started);
  if (begun) {
    const { run, environment, date } = begun;
    Object.assign(search, { run, environment, date });
  }
  for (const tried of candidates) {
    const at = search.candidates.findIndex(({ id }) => id === tried.id);
    if (at < 0) search.candidates.push(tried);
    else search.candidates[at] = tried;
  }
  search.confirmations.push(...confirmations);
  if (message !== undefined) search.message = message;
  if (seconds !== undefined) search.seconds = seconds;
  if (ended) {
    search.state = ended.how;
    search.message = ended.summary;
  }
}

/** The best speedup of the correct candidates. */
export function best(search: Search): number | undefined {
  const all = search.candidates.map(({ speedup }) => speedup ?? 0);
  const most = all.reduce((most, one) => Math.max(most, one), 0);
  return most > 0 ? most : undefined;
}
