/** What the server says of a file as a whole. */
export interface Summary {
    readonly tensors: number;
    readonly mistakes: number;
    /** Examples that rest on a guess. */
    readonly guessed: number;
}

/** A file in a few words: `14 tensors · 1 mistake · guessed inputs: 2`. Empty where nothing was seen of it. */
export function summaryText({ tensors, mistakes, guessed }: Summary): string {
    const counted = (count: number, noun: string) => (count ? [`${count} ${noun}${count === 1 ? '' : 's'}`] : []);
    return [...counted(tensors, 'tensor'), ...counted(mistakes, 'mistake'), ...(guessed ? [`guessed inputs: ${guessed}`] : [])].join(' · ');
}
