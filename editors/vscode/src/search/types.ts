// What the server tells of a search, and what a panel shows of it. Host and page of the panel share this.

/** What of a file is optimized, as the server has it. */
export type Subject = "file" | { kernel: string } | { function: string };

export interface Tried {
  /** 0 is the root, which holds no candidate, and 1 the file as it was. */
  id: number;
  parent: number;
  /** Whether it has another structure than what it was made of. */
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

/** What is new of a search: the parameters of `warpsmith/search`. */
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

/** All that is shown of a search. */
export interface Search {
  /** Its name while the server is at it, or was. */
  job: string | undefined;
  uri: string;
  /** Its name in the workspace, once it is written down. */
  run: string;
  name: string;
  subject: Subject;
  budget: number;
  seconds: number;
  environment: string;
  date: string;
  state: "running" | "over" | "stopped" | "failed";
  /** What happens now, or how it ended. */
  message: string;
  candidates: Tried[];
  confirmations: Confirmation[];
  /** From the report, once there is one: the change with its diff, and the sections of measurements. */
  report: { change: string | null; diff: string | null; page: string } | undefined;
}

/** One candidate, as the server answers. */
export interface Detail extends Tried {
  diff: string;
  times: [number, number] | null;
  calls: { call: string; before_ms: number; ratio: number }[];
  remembered: boolean;
  twin: boolean;
}

/** From the host to the page. */
export type ToPage =
  | { kind: "search"; search: Search; canApply: boolean }
  | { kind: "news"; news: News }
  | { kind: "offer"; canApply: boolean }
  | { kind: "detail"; detail: Detail }
  | { kind: "no-detail"; id: number; why: string };

/** From the page to the host. */
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

/** Takes in what is new. A candidate that is known is another one now. */
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

/** The best speedup of what is right. */
export function best(search: Search): number | undefined {
  const all = search.candidates.map(({ speedup }) => speedup ?? 0);
  const most = all.reduce((most, one) => Math.max(most, one), 0);
  return most > 0 ? most : undefined;
}
