// Chromium, headless, with a fresh profile for every launch.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium as playwright } from "playwright-core";
import { chromium } from "./paths.mjs";
import { PATIENCE } from "./patience.mjs";

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/**
 * Opens Chromium and hands back its context, whose `close()` also removes the profile.
 * @param {{width?: number, height?: number, scale?: number}} size in CSS pixels; scale: device pixels in one of them.
 */
export async function openBrowser({ width = 1400, height = 1000, scale = 1 } = {}) {
  const profile = mkdtempSync(join(tmpdir(), "shapelens-chromium-"));
  const context = await playwright.launchPersistentContext(profile, {
    executablePath: chromium(), headless: true, timeout: PATIENCE, args: FLAGS, viewport: { width, height }, deviceScaleFactor: scale,
    reducedMotion: "reduce", // What spins is painted by the processor.
  });
  context.setDefaultTimeout(PATIENCE);
  // Removed only once Chromium has ended: it writes its profile until then.
  const close = context.close.bind(context);
  context.close = async () => {
    await close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
  return context;
}
