// How long the flows wait before they say that something does not come.
import { availableParallelism, loadavg } from "node:os";

/** How many times as long as on an idle machine of two fast processors something takes that computes. Others may start while a flow runs. */
export const SLOWNESS = Math.min(5, Math.max(2, loadavg()[0] / availableParallelism()));

/** ms, for everything that is waited for. The first hints wait for torch to be imported. */
export const PATIENCE = 60_000 * SLOWNESS;

/** ms, after which a key is pressed, or something clicked on, once more: while the focus is on its way to somewhere else that is lost. */
export const AGAIN = 5_000 * SLOWNESS;
