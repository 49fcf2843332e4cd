// Which Python runs the language server. It need not be the one with torch: a project may still be on Python 3.9.
import { execFile } from 'node:child_process';

/** What `launch.py --probe` says about an interpreter. */
export interface Probe {
    /** The version, `[3, 12, 1]`. */
    readonly python: readonly number[];
    /** Why this interpreter cannot run the server, a sentence; null if it can. */
    readonly problem: string | null;
}

export type Prober = (python: string) => Promise<Probe>;

/** Ask an interpreter whether it can run the server. An interpreter that does not answer within 20 s cannot. */
export function prober(launch: string): Prober {
    return (python) =>
        new Promise((resolve) => {
            // Python 2 has no -I. It is there to say that it is too old, and -E -s are all it needs for that.
            execFile(python, ['-E', '-s', launch, '--probe'], { timeout: 20_000, windowsHide: true }, (error, stdout, stderr) => {
                try {
                    resolve(JSON.parse(stdout) as Probe);
                } catch {
                    const why = stderr.trim().split('\n').pop() || (error ? error.message : 'it answered nothing');
                    resolve({ python: [], problem: `${python} does not run as a Python interpreter: ${why}` });
                }
            });
        });
}

export interface Choice {
    readonly python?: string;
    /** Why there is none. */
    readonly problem?: string;
}

/**
 * The interpreter for the server: `setting` alone if there is one, else the first of `candidates` that can run it.
 * `candidates` are in order of preference; the interpreter with torch comes first, as it is there for sure.
 */
export async function chooseServerPython(setting: string | undefined, candidates: readonly string[], probe: Prober): Promise<Choice> {
    if (setting !== undefined) {
        const { problem } = await probe(setting);
        return problem === null ? { python: setting } : { problem: `shapelens.serverInterpreter: ${problem}` };
    }
    const problems: string[] = [];
    for (const python of new Set(candidates)) {
        const { problem } = await probe(python);
        if (problem === null) {
            return { python };
        }
        problems.push(problem);
    }
    if (problems.length === 0) {
        return { problem: 'No Python was found. Install Python 3.10 or newer, or name one in shapelens.serverInterpreter.' };
    }
    return { problem: `No Python that can run the ShapeLens server was found; name one in shapelens.serverInterpreter. ${problems.join(' ')}` };
}
