// The panels of this window: one for each search.
import * as vscode from "vscode";
import { actions, argument, cursor } from "../actions";
import type { Offers } from "../offers";
import type { Session } from "../session";
import { enrich, Panel, VIEW, type Answer, type Around, type Remembered } from "./panel";
import type { Searches } from "./searches";
import { begin, type Search } from "./types";

export class Panels implements vscode.WebviewPanelSerializer<Remembered>, vscode.Disposable {
  private readonly panels = new Set<Panel>();
  private readonly subscriptions: vscode.Disposable[];
  private readonly around: Around;

  constructor(
    extension: vscode.Uri,
    private readonly session: Session,
    private readonly searches: Searches,
    offers: Offers,
  ) {
    this.around = { extension, session, offers };
    this.subscriptions = [
      searches.onDidHear(({ search, news }) => this.panels.forEach((panel) => panel.hear(search, news))),
      offers.onAnswer(() => this.panels.forEach((panel) => panel.offersChanged())),
      vscode.window.registerWebviewPanelSerializer(VIEW, this),
      vscode.commands.registerCommand("warpsmith.showSearch", () => this.choose()),
    ];
  }

  /** Shows a search, in its existing panel or in a new one. */
  show(search: Search): void {
    const known = [...this.panels].find((panel) => panel.shows(search));
    if (known) return known.view.reveal();
    const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    this.add(vscode.window.createWebviewPanel(VIEW, `Search ${search.name}`, place), search);
  }

  async deserializeWebviewPanel(view: vscode.WebviewPanel, remembered: Remembered | undefined): Promise<void> {
    const search = remembered?.run ? await this.ofRun(remembered).catch(() => undefined) : undefined;
    if (search) this.add(view, search);
    else view.dispose();
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private add(view: vscode.WebviewPanel, search: Search): void {
    const panel = new Panel(view, search, this.around);
    this.panels.add(panel);
    view.onDidDispose(() => this.panels.delete(panel));
  }

  /** Loads a run that this window does not know. */
  private async ofRun({ uri, run }: Remembered): Promise<Search> {
    const known = this.searches.all().find((search) => search.run === run && search.uri === uri);
    if (known) return known;
    const search: Search = { ...begin(undefined), uri, state: "stopped", message: "It was stopped before it ended." };
    enrich(search, await this.session.ask<Answer>("warpsmith/search", { uri, run }));
    return search;
  }

  /** Shows the running search, or one that the user picks from several; otherwise the last one of the kernel at the cursor, or else of this window. */
  private async choose(): Promise<void> {
    const running = this.searches.running();
    const items = running.map((search) => ({ label: `Optimizing ${search.name}`, description: search.message, search }));
    const title = "Show a search";
    const picked = items.length > 1 ? await vscode.window.showQuickPick(items, { title }) : items[0];
    if (picked) return this.show(picked.search);
    if (running.length > 0) return;
    const search = (await this.atCursor()) ?? this.searches.all()[0];
    if (search) this.show(search);
    else void vscode.window.showInformationMessage("Warpsmith: nothing was searched yet. Put the cursor into a kernel and optimize it.");
  }

  private async atCursor(): Promise<Search | undefined> {
    if (vscode.window.activeTextEditor?.document.languageId !== "python") return undefined;
    const at = cursor(this.session);
    const offered = at ? await actions(at, "refactor.rewrite") : [];
    const last = offered.find((action) => action.command?.command === "warpsmith.report");
    const { uri, run } = last ? argument(last) : {};
    return typeof uri === "string" && typeof run === "string" ? this.ofRun({ uri, run }) : undefined;
  }
}
